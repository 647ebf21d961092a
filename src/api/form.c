#include "form_internal.h"
#include "core/path.h"
#include "core/secret.h"

enum { PARAMETERS_MAX = 32 };

static struct text *value_of(const struct form_field *field, void *target)
{
    return (struct text *)(void *)((char *)target + field->offset);
}

/* NULL: an unknown parameter. */
static const struct form_field *find_field(const struct form_field *fields, size_t count, struct text name)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal(text_of(fields[i].name), name))
            return &fields[i];
    return NULL;
}

static bool contains(const struct text *names, size_t count, struct text name)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal(names[i], name))
            return true;
    return false;
}

enum form_result form_read(struct text body, char *storage, const struct form_field *fields, size_t count, void *target,
                           struct text *ret_name)
{
    struct text names[PARAMETERS_MAX], name, value;
    size_t name_count = 0;
    enum path_query_result result;

    while ((result = path_next_parameter(&body, &storage, &name, &value)) == PATH_QUERY_ITEM) {
        const struct form_field *field = find_field(fields, count, name);

        if (name_count == PARAMETERS_MAX)
            return FORM_MALFORMED;
        if (contains(names, name_count, name)) {
            *ret_name = name;
            return FORM_REPEATED;
        }
        if (secret_within(name) || (!(field && field->takes_secrets) && secret_within(value)))
            return FORM_SECRET;
        names[name_count++] = name;
        if (field && value.len > 0)
            *value_of(field, target) = value;
    }
    if (result == PATH_QUERY_MALFORMED)
        return FORM_MALFORMED;
    for (size_t i = 0; i < count; i++)
        if (fields[i].required && value_of(&fields[i], target)->len == 0) {
            *ret_name = text_of(fields[i].name);
            return FORM_MISSING;
        }
    return FORM_OK;
}

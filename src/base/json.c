#include "base/json.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "json_internal.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Beyond 2^53 - 1, a double cannot represent every integer. */
#define JSON_INTEGER_MAX 9007199254740991.0

/* A struct json is a cJSON under another name, so that no other file needs cJSON.h. */
static const cJSON *item_of(const struct json *value)
{
    return (const cJSON *)(const void *)value;
}

static const struct json *value_of(const cJSON *item)
{
    return (const struct json *)(const void *)item;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* By sorting: a body of many members must not cost their square. */
static bool has_duplicate_names(const cJSON *object)
{
    size_t count = 0, filled = 0;
    for (const cJSON *item = object->child; item; item = item->next)
        count++;
    const char **names = mem_alloc(count * sizeof *names);
    for (const cJSON *item = object->child; item; item = item->next)
        names[filled++] = item->string;
    qsort(names, count, sizeof *names, compare_names);

    bool is_found = false;
    for (size_t i = 1; i < count && !is_found; i++)
        is_found = strcmp(names[i - 1], names[i]) == 0;
    free(names);
    return is_found;
}

/* Recursion in these two is bounded by JSON_DEPTH_MAX. */
static bool has_duplicates_within(const cJSON *container)
{
    if (cJSON_IsObject(container) && has_duplicate_names(container))
        return true;
    for (const cJSON *item = container->child; item; item = item->next)
        if (item->child && has_duplicates_within(item))
            return true;
    return false;
}

static void wipe_strings(cJSON *item)
{
    for (; item; item = item->next) {
        if (item->valuestring)
            secure_wipe(item->valuestring, strlen(item->valuestring));
        if (item->string)
            secure_wipe(item->string, strlen(item->string));
        wipe_strings(item->child);
    }
}

static cJSON *parse_object(struct text body, const char **ret_why)
{
    size_t wrong;
    *ret_why = json_scan_object(body, &wrong);
    if (*ret_why)
        return NULL;
    cJSON *document = cJSON_ParseWithLengthOpts(body.ptr, body.len, NULL, false);
    if (!document)
        *ret_why = "out of memory";
    else if (has_duplicates_within(document))
        *ret_why = "an object has two members with the same name";
    return document;
}

struct json *json_parse_object(struct text body, const char **ret_why)
{
    const char *why;
    struct json *document = (struct json *)(void *)parse_object(body, &why);
    if (!why)
        return document;
    json_free(document);
    if (ret_why)
        *ret_why = why;
    return NULL;
}

bool json_find_mistake(struct text body, size_t *ret_line, size_t *ret_column)
{
    size_t wrong;
    if (!json_scan_object(body, &wrong))
        return false;
    struct text before = {body.ptr, wrong}, line;
    for (*ret_line = 0; text_next(&before, '\n', &line); ++*ret_line)
        if (!text_count_utf8(line, ret_column))
            *ret_column = line.len;
    if (*ret_line == 0) {
        *ret_line = 1;
        *ret_column = 0;
    }
    ++*ret_column;
    return true;
}

void json_free(struct json *document)
{
    cJSON *item = (cJSON *)(void *)document;
    wipe_strings(item);
    cJSON_Delete(item);
}

enum json_type json_type(const struct json *value)
{
    const cJSON *item = item_of(value);
    if (cJSON_IsBool(item))
        return JSON_BOOL;
    if (cJSON_IsNumber(item))
        return JSON_NUMBER;
    if (cJSON_IsString(item))
        return JSON_STRING;
    if (cJSON_IsArray(item))
        return JSON_ARRAY;
    return cJSON_IsObject(item) ? JSON_OBJECT : JSON_NULL;
}

const struct json *json_member(const struct json *object, const char *name)
{
    CHECK(json_type(object) == JSON_OBJECT);
    return value_of(cJSON_GetObjectItemCaseSensitive(item_of(object), name));
}

struct text json_text(const struct json *string)
{
    CHECK(json_type(string) == JSON_STRING);
    return text_of(item_of(string)->valuestring);
}

bool json_bool(const struct json *boolean)
{
    CHECK(json_type(boolean) == JSON_BOOL);
    return cJSON_IsTrue(item_of(boolean));
}

bool json_integer(const struct json *number, int64_t *ret_value)
{
    CHECK(json_type(number) == JSON_NUMBER);
    double value = item_of(number)->valuedouble;
    if (!(fabs(value) <= JSON_INTEGER_MAX) || (double)(int64_t)value != value)
        return false;
    *ret_value = (int64_t)value;
    return true;
}

const struct json *json_first(const struct json *container)
{
    return value_of(item_of(container)->child);
}

const struct json *json_next(const struct json *value)
{
    return value_of(item_of(value)->next);
}

struct text json_name(const struct json *value)
{
    return text_of(item_of(value)->string);
}

static const struct json_field *find_field(const struct json_field *fields, size_t count, struct text name)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal(text_of(fields[i].name), name))
            return &fields[i];
    return NULL;
}

static bool read_field(const struct json_field *field, const struct json *value, void *target)
{
    void *place = (char *)target + field->offset;
    if (field->type == JSON_FIELD_WORD && json_type(value) == JSON_BOOL) {
        *(struct text *)place = json_bool(value) ? TEXT("true") : TEXT("false");
        return true;
    }
    if ((field->type == JSON_FIELD_TEXT || field->type == JSON_FIELD_WORD) && json_type(value) == JSON_STRING) {
        struct text text = json_text(value);
        memcpy(place, &text, sizeof text);
        return true;
    }
    if (field->type == JSON_FIELD_ARRAY && json_type(value) == JSON_ARRAY) {
        memcpy(place, &value, sizeof value);
        return true;
    }
    if (field->type == JSON_FIELD_BOOL && json_type(value) == JSON_BOOL) {
        *(bool *)place = json_bool(value);
        return true;
    }
    if (field->type == JSON_FIELD_INTEGER && json_type(value) == JSON_NUMBER)
        return json_integer(value, place);
    return false;
}

enum json_read_result json_read(const struct json *object, const struct json_field *fields, size_t count, void *target,
                                struct text *ret_name)
{
    for (const struct json *value = json_first(object); value; value = json_next(value)) {
        const struct json_field *field = find_field(fields, count, json_name(value));
        if (field && read_field(field, value, target))
            continue;
        *ret_name = json_name(value);
        return field ? JSON_READ_WRONG_TYPE : JSON_READ_UNKNOWN;
    }
    for (size_t i = 0; i < count; i++) {
        if (!fields[i].required || json_member(object, fields[i].name))
            continue;
        *ret_name = text_of(fields[i].name);
        return JSON_READ_MISSING;
    }
    return JSON_READ_OK;
}

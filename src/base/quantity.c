#include "base/quantity.h"

#include "base/check.h"

struct unit {
    struct text name;
    int64_t in_smallest;
    bool is_alias; /* read, never printed */
};

enum { UNITS_MAX = 6 };

/* Smallest first. */
static const struct form {
    struct unit units[UNITS_MAX];
    const char *description;
} FORMS[] = {
    [QUANTITY_TIME] = {{{{"ms", 2}, 1, false},
                        {{"s", 1}, 1000, false},
                        {{"min", 3}, 60000, false},
                        {{"m", 1}, 60000, true},
                        {{"h", 1}, 3600000, false},
                        {{"d", 1}, 86400000, false}},
                       "a whole number and ms, s, min, h or d; a bare number counts milliseconds"},
    [QUANTITY_SIZE] = {{{{"", 0}, 1, false},
                        {{"B", 1}, 1, true},
                        {{"KiB", 3}, 1 << 10, false},
                        {{"MiB", 3}, 1 << 20, false},
                        {{"GiB", 3}, 1 << 30, false}},
                       "a whole number and KiB, MiB or GiB; a bare number counts bytes"},
};

static const struct unit *find_unit(enum quantity_kind kind, struct text name)
{
    for (size_t i = 0; i < UNITS_MAX; i++) {
        const struct unit *unit = &FORMS[kind].units[i];

        if (unit->in_smallest > 0 && text_equal(unit->name, name))
            return unit;
    }
    return NULL;
}

bool quantity_parse(enum quantity_kind kind, struct text t, int64_t *ret_value)
{
    const struct unit *unit;
    uint64_t number;
    size_t digits = 0;

    while (digits < t.len && text_is_digit(t.ptr[digits]))
        digits++;
    unit = digits == t.len ? &FORMS[kind].units[0] : find_unit(kind, text_skip(t, digits));
    if (!unit || !text_to_u64((struct text){t.ptr, digits}, (uint64_t)(INT64_MAX / unit->in_smallest), &number))
        return false;
    *ret_value = (int64_t)number * unit->in_smallest;
    return true;
}

void quantity_print(enum quantity_kind kind, int64_t value, struct buf *out)
{
    const struct unit *best = &FORMS[kind].units[0];

    CHECK(value >= 0);
    for (size_t i = 0; i < UNITS_MAX && value > 0; i++) {
        const struct unit *unit = &FORMS[kind].units[i];

        if (unit->in_smallest > 0 && !unit->is_alias && value % unit->in_smallest == 0)
            best = unit;
    }
    buf_append_u64(out, (uint64_t)(value / best->in_smallest));
    buf_append_text(out, value == 0 ? TEXT("") : best->name);
}

const char *quantity_form(enum quantity_kind kind)
{
    return FORMS[kind].description;
}

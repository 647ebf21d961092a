#include "base/options.h"

#include "base/check.h"
#include "base/quantity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_NAME_MAX_BYTES = 48 };

#define ENVIRONMENT_PREFIX "CHATELAINE_"

/* One run of options_read(). */
struct reader {
    const struct option_table *tables;
    size_t table_count;
    void *target;
    uint8_t *origins;
    struct buf *why;
};

/* A value for a row, and where it was written: "--name" or "CHATELAINE_NAME". */
struct setting {
    const struct option_row *row;
    enum option_origin origin;
    struct text source;
    const char *value;
};

static void store(const struct reader *r, const struct option_row *row, const void *value, size_t bytes)
{
    memcpy((char *)r->target + row->offset, value, bytes);
}

static void store_text(const struct reader *r, const struct option_row *row, const char *value)
{
    store(r, row, &value, sizeof value);
}

static void store_integer(const struct reader *r, const struct option_row *row, int64_t value)
{
    store(r, row, &value, sizeof value);
}

static void store_flag(const struct reader *r, const struct option_row *row, bool value)
{
    store(r, row, &value, sizeof value);
}

static void store_choice(const struct reader *r, const struct option_row *row, int value)
{
    store(r, row, &value, sizeof value);
}

static bool integer_parse(struct text t, int64_t *ret_value)
{
    bool is_negative = text_starts_with(t, TEXT("-"));
    uint64_t magnitude;
    if (!text_to_u64(text_skip(t, is_negative), INT64_MAX, &magnitude))
        return false;
    *ret_value = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static bool set_text(const struct reader *r, const struct setting *s)
{
    size_t length = strlen(s->value);
    if (s->row->max > 0 && length > (size_t)s->row->max) {
        buf_printf(r->why, "%.*s must have at most %lld bytes, not %zu.", TEXT_ARG(s->source), (long long)s->row->max,
                   length);
        return false;
    }
    store_text(r, s->row, s->value);
    return true;
}

static bool set_integer(const struct reader *r, const struct setting *s)
{
    int64_t value;
    if (!integer_parse(text_of(s->value), &value) || value < s->row->min || value > s->row->max) {
        buf_printf(r->why, "%.*s must be a whole number from %lld to %lld, not \"%s\".", TEXT_ARG(s->source),
                   (long long)s->row->min, (long long)s->row->max, s->value);
        return false;
    }
    store_integer(r, s->row, value);
    return true;
}

static enum quantity_kind quantity_of(const struct option_row *row)
{
    return row->type == OPTION_TIME ? QUANTITY_TIME : QUANTITY_SIZE;
}

static bool set_quantity(const struct reader *r, const struct setting *s)
{
    enum quantity_kind kind = quantity_of(s->row);
    int64_t value;

    if (quantity_parse(kind, text_of(s->value), &value) && value >= s->row->min && value <= s->row->max) {
        store_integer(r, s->row, value);
        return true;
    }
    buf_printf(r->why, "%.*s must be from ", TEXT_ARG(s->source));
    quantity_print(kind, s->row->min, r->why);
    buf_append_str(r->why, " to ");
    quantity_print(kind, s->row->max, r->why);
    buf_printf(r->why, " (%s), not \"%s\".", quantity_form(kind), s->value);
    return false;
}

static bool is_one_of(struct text value, const char *words, int *ret_index)
{
    struct text rest = text_of(words), word;
    for (int i = 0; text_next(&rest, '|', &word); i++) {
        if (!text_equal(word, value))
            continue;
        *ret_index = i;
        return true;
    }
    return false;
}

static bool set_flag(const struct reader *r, const struct setting *s)
{
    int index;
    if (!is_one_of(text_of(s->value), "true|1|yes|on|false|0|no|off", &index)) {
        buf_printf(r->why, "%.*s must be true or false, not \"%s\".", TEXT_ARG(s->source), s->value);
        return false;
    }
    store_flag(r, s->row, index < 4);
    return true;
}

/* "a, b or c" */
static void print_alternatives(const char *choices, struct buf *out)
{
    struct text rest = text_of(choices), choice;
    bool is_first = true;
    while (text_next(&rest, '|', &choice)) {
        buf_append_str(out, is_first ? "" : rest.ptr ? ", " : " or ");
        buf_append_text(out, choice);
        is_first = false;
    }
}

static bool set_choice(const struct reader *r, const struct setting *s)
{
    int index;
    if (!is_one_of(text_of(s->value), s->row->choices, &index)) {
        buf_printf(r->why, "%.*s must be ", TEXT_ARG(s->source));
        print_alternatives(s->row->choices, r->why);
        buf_printf(r->why, ", not \"%s\".", s->value);
        return false;
    }
    store_choice(r, s->row, index);
    return true;
}

static uint8_t *origin_of(const struct reader *r, const struct option_row *row)
{
    uint8_t *before = r->origins;

    for (size_t t = 0; t < r->table_count; t++) {
        const struct option_table *table = &r->tables[t];

        if (row >= table->rows && row < table->rows + table->count)
            return before + (row - table->rows);
        before += table->count;
    }
    UNREACHABLE();
}

static bool set(const struct reader *r, const struct setting *s)
{
    *origin_of(r, s->row) = (uint8_t)s->origin;
    switch (s->row->type) {
    case OPTION_TEXT:
        return set_text(r, s);
    case OPTION_INTEGER:
        return set_integer(r, s);
    case OPTION_TIME:
    case OPTION_SIZE:
        return set_quantity(r, s);
    case OPTION_FLAG:
        return set_flag(r, s);
    case OPTION_CHOICE:
        return set_choice(r, s);
    }
    UNREACHABLE();
}

static void set_to_nothing(const struct reader *r, const struct option_row *row)
{
    switch (row->type) {
    case OPTION_TEXT:
        store_text(r, row, NULL);
        break;
    case OPTION_INTEGER:
    case OPTION_TIME:
    case OPTION_SIZE:
        store_integer(r, row, 0);
        break;
    case OPTION_FLAG:
        store_flag(r, row, false);
        break;
    case OPTION_CHOICE:
        store_choice(r, row, 0);
        break;
    }
}

static bool set_default(const struct reader *r, const struct option_row *row)
{
    if (row->default_text)
        return set(r, &(struct setting){row, OPTION_FROM_DEFAULT, text_of(row->name), row->default_text});
    *origin_of(r, row) = OPTION_FROM_DEFAULT;
    set_to_nothing(r, row);
    return true;
}

void options_print_variable(const struct option_row *row, struct buf *out)
{
    buf_append_str(out, ENVIRONMENT_PREFIX);
    for (const char *name = row->name; *name; name++)
        buf_append_char(out, *name == '-' ? '_' : *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name);
}

/* An empty variable counts as unset: compose files pass on unset variables as empty ones. */
static bool set_from_environment(const struct reader *r, const struct option_row *row)
{
    char storage[sizeof ENVIRONMENT_PREFIX + OPTION_NAME_MAX_BYTES];
    struct buf name;
    buf_init_fixed(&name, storage, sizeof storage);
    options_print_variable(row, &name);
    buf_append_char(&name, '\0');
    CHECK(!name.failed);

    const char *value = getenv(storage);
    return !value || !*value || set(r, &(struct setting){row, OPTION_FROM_ENVIRONMENT, text_of(storage), value});
}

static bool for_each_row(const struct reader *r, bool (*fn)(const struct reader *, const struct option_row *))
{
    for (size_t t = 0; t < r->table_count; t++)
        for (size_t i = 0; i < r->tables[t].count; i++)
            if (!fn(r, &r->tables[t].rows[i]))
                return false;
    return true;
}

static const struct option_row *find_row(const struct reader *r, struct text name)
{
    for (size_t t = 0; t < r->table_count; t++)
        for (size_t i = 0; i < r->tables[t].count; i++)
            if (text_equal(text_of(r->tables[t].rows[i].name), name))
                return &r->tables[t].rows[i];
    return NULL;
}

static const struct option_row *find_letter(const struct reader *r, struct text letter)
{
    for (size_t t = 0; t < r->table_count && letter.len == 1; t++)
        for (size_t i = 0; i < r->tables[t].count; i++)
            if (r->tables[t].rows[i].letter == letter.ptr[0])
                return &r->tables[t].rows[i];
    return NULL;
}

/* The name that was probably meant; NULL when none is near. */
static const char *nearest_name(const struct reader *r, struct text name)
{
    struct text_guess guess = {.written = name};
    for (size_t t = 0; t < r->table_count; t++)
        for (size_t i = 0; i < r->tables[t].count; i++)
            text_guess_try(&guess, r->tables[t].rows[i].name);
    return guess.found;
}

static void explain_unknown(const struct reader *r, struct text written, struct text name)
{
    const char *meant = nearest_name(r, name);
    buf_printf(r->why, "There is no option %.*s", TEXT_ARG(written));
    if (meant)
        buf_printf(r->why, "; did you mean --%s?", meant);
    else
        buf_append_str(r->why, "; --help lists all options.");
}

/* Reads the option at argv[at], which begins with '-'. Returns how many arguments it takes, 0 on failure. */
static int read_option(const struct reader *r, int argc, char **argv, int at)
{
    struct text rest = text_of(argv[at]), written;
    text_next(&rest, '=', &written);
    struct text name = text_skip(written, text_starts_with(written, TEXT("--")) ? 2 : 1);
    const struct option_row *row = name.len + 2 == written.len ? find_row(r, name) : find_letter(r, name);
    if (!row) {
        explain_unknown(r, written, name);
        return 0;
    }

    const char *next = at + 1 < argc ? argv[at + 1] : NULL;
    bool is_next_option = next && strncmp(next, "--", 2) == 0;
    struct setting s = {row, OPTION_FROM_ARGUMENT, written, rest.ptr};
    int taken = 1;
    if (!s.value && row->type == OPTION_FLAG) {
        s.value = "true";
    } else if (!s.value && next && !is_next_option) {
        s.value = next;
        taken = 2;
    }
    if (!s.value) {
        buf_printf(r->why, "%.*s needs a value", TEXT_ARG(written));
        if (is_next_option)
            buf_printf(r->why, "; one that begins with -- is written %.*s=%s", TEXT_ARG(written), next);
        buf_append_char(r->why, '.');
        return 0;
    }
    return set(r, &s) ? taken : 0;
}

/* Moves operands to the front, in their order. */
static bool read_arguments(const struct reader *r, int argc, char **argv, int *ret_rest)
{
    int rest = 0;
    bool are_options_over = false;
    for (int at = 0; at < argc;) {
        char *argument = argv[at];
        bool is_option = !are_options_over && argument[0] == '-' && argument[1] != '\0';
        if (!is_option) {
            argv[rest++] = argument;
            at++;
        } else if (strcmp(argument, "--") == 0) {
            are_options_over = true;
            at++;
        } else {
            int taken = read_option(r, argc, argv, at);
            if (taken == 0)
                return false;
            at += taken;
        }
    }
    *ret_rest = rest;
    return true;
}

static void print_source(const struct option_row *row, enum option_origin origin, struct buf *out)
{
    if (origin == OPTION_FROM_ENVIRONMENT)
        options_print_variable(row, out);
    else
        buf_printf(out, "--%s", row->name);
}

/* Whoever names a Redis on the command line means it, whatever the environment says. */
static bool choose_form(const struct reader *r, const struct option_row *row)
{
    const struct option_row *other = row->instead_of ? find_row(r, text_of(row->instead_of)) : NULL;

    if (!other)
        return true;
    uint8_t own = *origin_of(r, row), others = *origin_of(r, other);
    if (own != others)
        return set_default(r, own > others ? other : row);
    if (own == OPTION_FROM_DEFAULT)
        return true;
    print_source(other, own, r->why);
    buf_append_str(r->why, " and ");
    print_source(row, own, r->why);
    buf_append_str(r->why, " are two forms of one setting: give one of them.");
    return false;
}

bool options_read_with_origins(const struct option_table *tables, size_t table_count, void *target, int argc,
                               char **argv, int *ret_rest, uint8_t *ret_origins, struct buf *ret_why)
{
    struct reader r = {tables, table_count, target, ret_origins, ret_why};
    CHECK(for_each_row(&r, set_default));
    return for_each_row(&r, set_from_environment) && read_arguments(&r, argc, argv, ret_rest) &&
           for_each_row(&r, choose_form);
}

bool options_read(const struct option_table *tables, size_t table_count, void *target, int argc, char **argv,
                  int *ret_rest, struct buf *ret_why)
{
    uint8_t origins[OPTION_ROWS_MAX];
    size_t rows = 0;

    for (size_t i = 0; i < table_count; i++)
        rows += tables[i].count;
    CHECK(rows <= OPTION_ROWS_MAX);
    return options_read_with_origins(tables, table_count, target, argc, argv, ret_rest, origins, ret_why);
}

static void print_choice(const struct option_row *row, int index, struct buf *out)
{
    struct text rest = text_of(row->choices), word = {NULL, 0};

    for (int i = 0; i <= index; i++)
        CHECK(text_next(&rest, '|', &word));
    buf_append_text(out, word);
}

void options_print_value(const struct option_row *row, const void *target, struct buf *out)
{
    const void *at = (const char *)target + row->offset;

    switch (row->type) {
    case OPTION_TEXT:
        buf_append_text(out, text_of(*(const char *const *)at));
        return;
    case OPTION_INTEGER:
        buf_printf(out, "%" PRId64, *(const int64_t *)at);
        return;
    case OPTION_TIME:
    case OPTION_SIZE:
        quantity_print(quantity_of(row), *(const int64_t *)at, out);
        return;
    case OPTION_FLAG:
        buf_append_str(out, *(const bool *)at ? "true" : "false");
        return;
    case OPTION_CHOICE:
        print_choice(row, *(const int *)at, out);
        return;
    }
    UNREACHABLE();
}

#include "base/options.h"

#include "base/check.h"
#include "base/quantity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_NAME_MAX_BYTES = 48 };

#define ENVIRONMENT_PREFIX "CHATELAINE_"

/* One run of options_read(). */
struct option_reader {
    const struct option_table *tables;
    size_t table_count;
    void *target;
    const struct option_assignments *given; /* NULL: none */
    uint8_t *origins;
    struct buf *why;
    bool has_failed;
};

/* A value for a row, and where it was written: "--name" or "CHATELAINE_NAME", and the line of a file or NULL. */
struct setting {
    const struct option_row *row;
    enum option_origin origin;
    struct text source;
    const char *value;
    const char *where;
};

/* Begins the sentence about a mistake, on a line of its own. */
static struct buf *mistake(struct option_reader *r)
{
    if (r->why->len > 0)
        buf_append_char(r->why, '\n');
    r->has_failed = true;
    return r->why;
}

/* The same about a value, with its name. */
static struct buf *mistake_in(struct option_reader *r, const struct setting *s)
{
    struct buf *why = mistake(r);

    if (s->where)
        buf_printf(why, "%s: ", s->where);
    buf_append_text(why, s->source);
    return why;
}

/* How many bytes an option of each type takes in the target. */
static const size_t SIZES[] = {
    [OPTION_TEXT] = sizeof(const char *), [OPTION_INTEGER] = sizeof(int64_t), [OPTION_TIME] = sizeof(int64_t),
    [OPTION_SIZE] = sizeof(int64_t),      [OPTION_FLAG] = sizeof(bool),       [OPTION_CHOICE] = sizeof(int),
};

static void store(const struct option_reader *r, const struct option_row *row, const void *value)
{
    memcpy((char *)r->target + row->offset, value, SIZES[row->type]);
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

static void set_text(struct option_reader *r, const struct setting *s)
{
    size_t length = strlen(s->value);
    if (s->row->max > 0 && length > (size_t)s->row->max) {
        buf_printf(mistake_in(r, s), " must have at most %lld bytes, not %zu.", (long long)s->row->max, length);
        return;
    }
    store(r, s->row, &s->value);
}

static void set_integer(struct option_reader *r, const struct setting *s)
{
    int64_t value;
    if (!integer_parse(text_of(s->value), &value) || value < s->row->min || value > s->row->max) {
        buf_printf(mistake_in(r, s), " must be a whole number from %lld to %lld, not \"%s\".", (long long)s->row->min,
                   (long long)s->row->max, s->value);
        return;
    }
    store(r, s->row, &value);
}

static enum quantity_kind quantity_of(const struct option_row *row)
{
    return row->type == OPTION_TIME ? QUANTITY_TIME : QUANTITY_SIZE;
}

static void set_quantity(struct option_reader *r, const struct setting *s)
{
    enum quantity_kind kind = quantity_of(s->row);
    struct buf *why;
    int64_t value;

    if (quantity_parse(kind, text_of(s->value), &value) && value >= s->row->min && value <= s->row->max) {
        store(r, s->row, &value);
        return;
    }
    why = mistake_in(r, s);
    buf_append_str(why, " must be from ");
    quantity_print(kind, s->row->min, why);
    buf_append_str(why, " to ");
    quantity_print(kind, s->row->max, why);
    buf_printf(why, " (%s), not \"%s\".", quantity_form(kind), s->value);
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

static void set_flag(struct option_reader *r, const struct setting *s)
{
    int index;
    if (!is_one_of(text_of(s->value), "true|1|yes|on|false|0|no|off", &index)) {
        buf_printf(mistake_in(r, s), " must be true or false, not \"%s\".", s->value);
        return;
    }
    store(r, s->row, &(bool){index < 4});
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

static void set_choice(struct option_reader *r, const struct setting *s)
{
    int index;
    if (!is_one_of(text_of(s->value), s->row->choices, &index)) {
        struct buf *why = mistake_in(r, s);

        buf_append_str(why, " must be ");
        print_alternatives(s->row->choices, why);
        buf_printf(why, ", not \"%s\".", s->value);
        return;
    }
    store(r, s->row, &index);
}

static uint8_t *origin_of(const struct option_reader *r, const struct option_row *row)
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

/* A value that its row refuses is a mistake, and changes nothing but the origin. */
static void set(struct option_reader *r, const struct setting *s)
{
    static void (*const SETTERS[])(struct option_reader * r, const struct setting *s) = {
        [OPTION_TEXT] = set_text,     [OPTION_INTEGER] = set_integer, [OPTION_TIME] = set_quantity,
        [OPTION_SIZE] = set_quantity, [OPTION_FLAG] = set_flag,       [OPTION_CHOICE] = set_choice,
    };

    *origin_of(r, s->row) = (uint8_t)s->origin;
    SETTERS[s->row->type](r, s);
}

static void set_default(struct option_reader *r, const struct option_row *row)
{
    if (row->default_text) {
        set(r, &(struct setting){row, OPTION_FROM_DEFAULT, text_of(row->name), row->default_text, NULL});
        return;
    }
    *origin_of(r, row) = OPTION_FROM_DEFAULT;
    memset((char *)r->target + row->offset, 0, SIZES[row->type]);
}

void options_print_variable(const struct option_row *row, struct buf *out)
{
    buf_append_str(out, ENVIRONMENT_PREFIX);
    for (const char *name = row->name; *name; name++)
        buf_append_char(out, *name == '-' ? '_' : *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name);
}

enum { VARIABLE_BYTES = sizeof ENVIRONMENT_PREFIX + OPTION_NAME_MAX_BYTES };

static void print_variable(const struct option_row *row, char ret_name[VARIABLE_BYTES])
{
    struct buf name = BUF_OVER(ret_name, VARIABLE_BYTES);

    options_print_variable(row, &name);
    buf_append_char(&name, '\0');
    CHECK(!name.failed);
}

const struct option_assignment *options_assigned(const struct option_assignments *given, const struct option_row *row)
{
    char name[VARIABLE_BYTES];

    print_variable(row, name);
    for (size_t i = given ? given->count : 0; i-- > 0;)
        if (strcmp(given->rows[i].name, name) == 0)
            return &given->rows[i];
    return NULL;
}

/* An empty variable counts as unset: compose files pass on unset variables as empty ones. A file wins over the
 * environment, with an empty value too. */
static void set_from_variable(struct option_reader *r, const struct option_row *row)
{
    if (row->is_argument_only)
        return;
    const struct option_assignment *assigned = options_assigned(r->given, row);
    enum option_origin origin = assigned ? OPTION_FROM_FILE : OPTION_FROM_ENVIRONMENT;
    char name[VARIABLE_BYTES];

    print_variable(row, name);
    const char *value = assigned ? assigned->value : getenv(name);
    if (value && *value)
        set(r, &(struct setting){row, origin, text_of(name), value, assigned ? assigned->where : NULL});
}

static void for_each_row(struct option_reader *r, void (*fn)(struct option_reader *, const struct option_row *))
{
    for (size_t t = 0; t < r->table_count; t++)
        for (size_t i = 0; i < r->tables[t].count; i++)
            fn(r, &r->tables[t].rows[i]);
}

static const struct option_row *find_row(const struct option_reader *r, struct text name)
{
    for (size_t t = 0; t < r->table_count; t++)
        for (size_t i = 0; i < r->tables[t].count; i++)
            if (text_equal(text_of(r->tables[t].rows[i].name), name))
                return &r->tables[t].rows[i];
    return NULL;
}

static const struct option_row *find_letter(const struct option_reader *r, struct text letter)
{
    for (size_t t = 0; t < r->table_count && letter.len == 1; t++)
        for (size_t i = 0; i < r->tables[t].count; i++)
            if (r->tables[t].rows[i].letter == letter.ptr[0])
                return &r->tables[t].rows[i];
    return NULL;
}

/* The name that was probably meant; NULL when none is near. */
static const char *nearest_name(const struct option_reader *r, struct text name)
{
    struct text_guess guess = {.written = name};
    for (size_t t = 0; t < r->table_count; t++)
        for (size_t i = 0; i < r->tables[t].count; i++)
            text_guess_try(&guess, r->tables[t].rows[i].name);
    return guess.found;
}

static void explain_unknown(struct option_reader *r, struct text written, struct text name)
{
    const char *meant = nearest_name(r, name);
    struct buf *why = mistake(r);

    buf_printf(why, "There is no option %.*s", TEXT_ARG(written));
    if (meant)
        buf_printf(why, "; did you mean --%s?", meant);
    else
        buf_append_str(why, "; --help lists all options.");
}

static void explain_lack(struct option_reader *r, struct text written, const char *next_option)
{
    struct buf *why = mistake(r);

    buf_printf(why, "%.*s needs a value", TEXT_ARG(written));
    if (next_option)
        buf_printf(why, "; one that begins with -- is written %.*s=%s", TEXT_ARG(written), next_option);
    buf_append_char(why, '.');
}

/* Reads the option at argv[at], which begins with '-'. Returns how many arguments it takes; 0: that is not known, so
 * nothing behind it can be read. */
static int read_option(struct option_reader *r, int argc, char **argv, int at)
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
    struct setting s = {row, OPTION_FROM_ARGUMENT, written, rest.ptr, NULL};
    int taken = 1;
    if (!s.value && row->type == OPTION_FLAG) {
        s.value = "true";
    } else if (!s.value && next && !is_next_option) {
        s.value = next;
        taken = 2;
    }
    if (s.value)
        set(r, &s);
    else
        explain_lack(r, written, is_next_option ? next : NULL);
    return taken;
}

/* Moves operands to the front, in their order. */
static int read_arguments(struct option_reader *r, int argc, char **argv)
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
                break;
            at += taken;
        }
    }
    return rest;
}

static void print_source(const struct option_row *row, enum option_origin origin, struct buf *out)
{
    if (origin == OPTION_FROM_ARGUMENT)
        buf_printf(out, "--%s", row->name);
    else
        options_print_variable(row, out);
}

/* Whoever names a Redis on the command line means it, whatever the environment says. */
static void choose_form(struct option_reader *r, const struct option_row *row)
{
    const struct option_row *other = row->instead_of ? find_row(r, text_of(row->instead_of)) : NULL;
    struct buf *why;

    if (!other)
        return;
    uint8_t own = *origin_of(r, row), others = *origin_of(r, other);
    if (own != others)
        set_default(r, own > others ? other : row);
    if (own != others || own == OPTION_FROM_DEFAULT)
        return;
    why = mistake(r);
    print_source(other, own, why);
    buf_append_str(why, " and ");
    print_source(row, own, why);
    buf_append_str(why, " are two forms of one setting: give one of them.");
}

bool options_read_with_origins(const struct option_table *tables, size_t table_count,
                               const struct option_assignments *given, void *target, int argc, char **argv,
                               int *ret_rest, uint8_t *ret_origins, struct buf *ret_why)
{
    struct option_reader r = {tables, table_count, target, given, ret_origins, ret_why, false};

    for_each_row(&r, set_default);
    CHECK(!r.has_failed);
    for_each_row(&r, set_from_variable);
    *ret_rest = read_arguments(&r, argc, argv);
    for_each_row(&r, choose_form);
    return !r.has_failed;
}

/* In argv, an argument that begins with "--" is an option, never the value of another one. */
const char *options_peek(const struct option_row *row, int argc, char **argv)
{
    char name[VARIABLE_BYTES];
    const char *found = NULL;

    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        struct text rest = text_of(argv[i]), written;

        text_next(&rest, '=', &written);
        if (!text_starts_with(written, TEXT("--")) || !text_equal(text_skip(written, 2), text_of(row->name)))
            continue;
        found = rest.ptr ? rest.ptr : i + 1 < argc ? argv[i + 1] : NULL;
    }
    print_variable(row, name);
    found = found ? found : getenv(name);
    return found && *found ? found : NULL;
}

bool options_read(const struct option_table *tables, size_t table_count, void *target, int argc, char **argv,
                  int *ret_rest, struct buf *ret_why)
{
    uint8_t origins[OPTION_ROWS_MAX];
    size_t rows = 0;

    for (size_t i = 0; i < table_count; i++)
        rows += tables[i].count;
    CHECK(rows <= OPTION_ROWS_MAX);
    return options_read_with_origins(tables, table_count, NULL, target, argc, argv, ret_rest, origins, ret_why);
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

#include "base/options.h"

#include <string.h>

/* The columns in which an option's help begins and ends, and the option's indentation. */
enum { HELP_INDENT = 30, HELP_WIDTH = 110, OPTION_INDENT = 2 };

static const char *value_name(const struct option_row *row)
{
    if (row->type == OPTION_FLAG)
        return NULL;
    if (row->type == OPTION_CHOICE)
        return row->choices;
    static const char *const NAMES[] = {
        [OPTION_TEXT] = "TEXT", [OPTION_INTEGER] = "N", [OPTION_TIME] = "TIME", [OPTION_SIZE] = "SIZE"};
    return row->value_name ? row->value_name : NAMES[row->type];
}

static bool has_shown_default(const struct option_row *row)
{
    return row->type != OPTION_FLAG && row->default_text && row->default_text[0] != '\0';
}

static void print_spaces(size_t count, struct buf *out)
{
    while (count-- > 0)
        buf_append_char(out, ' ');
}

/* In terminal columns: each character in the tables takes one, however many bytes it has. */
static size_t width_of(struct text text)
{
    size_t count;

    return text_count_utf8(text, &count) ? count : text.len;
}

/* Prints words between the columns HELP_INDENT and HELP_WIDTH. *used: how many columns of the line are taken. */
static void print_wrapped(struct text help, size_t *used, struct buf *out)
{
    struct text word;
    while (text_next(&help, ' ', &word)) {
        if (*used > HELP_INDENT && *used + 1 + width_of(word) > HELP_WIDTH) {
            buf_append_char(out, '\n');
            print_spaces(HELP_INDENT, out);
            *used = HELP_INDENT;
        }
        if (*used > HELP_INDENT) {
            buf_append_char(out, ' ');
            ++*used;
        }
        buf_append_text(out, word);
        *used += width_of(word);
    }
}

static void print_help_row(const struct option_row *row, struct buf *out)
{
    const char *value = value_name(row);
    size_t used = OPTION_INDENT + strlen("--") + strlen(row->name) + (value ? 1 + width_of(text_of(value)) : 0);
    print_spaces(OPTION_INDENT, out);
    if (row->letter) {
        buf_printf(out, "-%c, ", row->letter);
        used += strlen("-x, ");
    }
    buf_printf(out, "--%s%s%s", row->name, value ? " " : "", value ? value : "");
    if (used + 2 > HELP_INDENT) {
        buf_append_char(out, '\n');
        used = 0;
    }
    print_spaces(HELP_INDENT - used, out);

    used = HELP_INDENT;
    print_wrapped(text_of(row->help), &used, out);
    if (has_shown_default(row)) {
        print_wrapped(TEXT("(default"), &used, out);
        print_wrapped(text_of(row->default_text), &used, out);
        buf_append_char(out, ')');
    }
    buf_append_char(out, '\n');
}

void options_print_help(const struct option_table *table, struct buf *out)
{
    for (size_t i = 0; i < table->count; i++)
        print_help_row(&table->rows[i], out);
}

static void print_man_char(char c, struct buf *out)
{
    if (c == '\\')
        buf_append_str(out, "\\e");
    else if (c == '-')
        buf_append_str(out, "\\-");
    else
        buf_append_char(out, c);
}

void options_print_man_text(const char *text, struct buf *out)
{
    bool at_line_start = true;

    for (; *text; text++) {
        bool ends_line = *text == '\n' || (*text == ' ' && out->len > 0 && out->ptr[out->len - 1] == '.');
        if (at_line_start && (*text == '.' || *text == '\''))
            buf_append_str(out, "\\&");
        print_man_char(ends_line ? '\n' : *text, out);
        at_line_start = ends_line;
    }
}

static void print_man_row(const struct option_row *row, struct buf *out)
{
    buf_append_str(out, ".It ");
    if (row->letter)
        buf_printf(out, "Fl %c , ", row->letter);
    buf_append_str(out, "Fl \\-");
    options_print_man_text(row->name, out);
    if (value_name(row)) {
        buf_append_str(out, " Ar ");
        options_print_man_text(value_name(row), out);
    }
    buf_append_char(out, '\n');
    options_print_man_text(row->help, out);
    if (has_shown_default(row)) {
        buf_append_str(out, "\nThe default is ");
        options_print_man_text(row->default_text, out);
        buf_append_char(out, '.');
    }
    buf_append_char(out, '\n');
}

void options_print_man(const struct option_table *table, struct buf *out)
{
    buf_append_str(out, ".Bl -tag -width Ds\n");
    for (size_t i = 0; i < table->count; i++)
        print_man_row(&table->rows[i], out);
    buf_append_str(out, ".El\n");
}

#include "conf.h"

#include "app/serve.h"

enum { CONF_MAX_BYTES = 256 * 1024, CONF_WIDTH = 100 };

/* Settings that a packaged node needs a value for. Their places are those of the package. */
static const struct {
    const char *name, *value;
} SET[] = {
    {"public-origin", ""},
    {"redis-file", "/etc/chatelaine/redis"},
    {"master-key-file", "/etc/chatelaine/master-key"},
    {"revocation-log", "/var/log/chatelaine/revocations"},
};

/* One that the units set, because each node needs another value. */
#define BY_UNIT "audit-log"
#define BY_UNIT_VALUE "/var/log/chatelaine/audit.log"
#define BY_UNIT_NOTE                                                                                   \
    "# chatelaine.service sets this file, chatelaine@NAME.service audit-NAME.log beside it. Without\n" \
    "# a value: no audit log.\n"

#define HEAD                                                                                                  \
    "# Settings of the Chatelaine nodes on this machine. See chatelaine.conf(5), and OPERATIONS.md in\n"      \
    "# /usr/share/doc/chatelaine. After a change:\n"                                                          \
    "#\n"                                                                                                     \
    "#   chatelaine-as-node doctor            # checks Redis and these settings\n"                            \
    "#   systemctl restart chatelaine         # nodes read this file only when they start\n"                  \
    "#\n"                                                                                                     \
    "# One NAME=VALUE per line, without blanks around '='; a value with blanks or $ stands in single\n"       \
    "# quotes, all of it. A line that begins with '#' is not in force: it shows the default, or what to\n"    \
    "# write. A line that is not clear is refused. The user chatelaine must be able to read this file, and\n" \
    "# so may all users of this machine: it names the files that hold secrets instead. Those belong to\n"     \
    "# the user chatelaine, with mode 0400.\n"

static const char *set_value(const struct option_row *row)
{
    for (size_t i = 0; i < sizeof SET / sizeof *SET; i++)
        if (strcmp(SET[i].name, row->name) == 0)
            return SET[i].value;
    return NULL;
}

static bool is_by_unit(const struct option_row *row)
{
    return strcmp(row->name, BY_UNIT) == 0;
}

/* The default; without one, what kind of value it takes. */
static const char *shown_value(const struct option_row *row)
{
    if (is_by_unit(row))
        return BY_UNIT_VALUE;
    if (row->type == OPTION_FLAG)
        return "false";
    return row->default_text ? row->default_text : row->value_name ? row->value_name : "";
}

/* Comment lines of at most CONF_WIDTH bytes. */
static void put_comment(struct text help, struct buf *out)
{
    struct text word;
    size_t used = 0;

    while (text_next(&help, ' ', &word)) {
        if (used > 0 && used + 1 + word.len > CONF_WIDTH) {
            buf_append_char(out, '\n');
            used = 0;
        }
        buf_append_char(out, used == 0 ? '#' : ' ');
        if (used == 0)
            buf_append_char(out, ' ');
        buf_append_text(out, word);
        used += (used == 0 ? 2 : 1) + word.len;
    }
    buf_append_char(out, '\n');
}

static void put_row(const struct option_row *row, struct buf *out)
{
    const char *value = set_value(row);

    buf_append_char(out, '\n');
    put_comment(text_of(row->help), out);
    if (row->type == OPTION_CHOICE)
        buf_printf(out, "# One of: %s.\n", row->choices);
    if (is_by_unit(row))
        buf_append_str(out, BY_UNIT_NOTE);
    if (!value)
        buf_append_char(out, '#');
    options_print_variable(row, out);
    buf_printf(out, "=%s\n", value ? value : shown_value(row));
}

static void put_rows(const struct option_table *table, bool are_set, struct buf *out)
{
    for (size_t i = 0; i < table->count; i++)
        if (&table->rows[i] != SETTINGS_FILES_ROW && (set_value(&table->rows[i]) != NULL) == are_set)
            put_row(&table->rows[i], out);
}

static void put_title(const char *title, struct buf *out)
{
    buf_printf(out, "\n\n### %s\n", title);
}

int conf_run(const struct command_line *line)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(CONF_MAX_BYTES);

    (void)line;
    buf_append_str(&out, HEAD);
    put_title("What every node needs", &out);
    for (const struct option_group *group = SERVE_OPTIONS; group->table; group++)
        put_rows(group->table, true, &out);
    for (const struct option_group *group = SERVE_OPTIONS; group->table; group++) {
        if (group->title)
            put_title(group->title, &out);
        put_rows(group->table, false, &out);
    }
    return command_print(buf_text(&out));
}

static void put_man_row(const struct option_row *row, struct buf *out)
{
    buf_append_str(out, ".It Ev ");
    options_print_variable(row, out);
    buf_append_str(out, "\n");
    options_print_man_text(row->help, out);
    buf_append_char(out, '\n');
    if (row->type == OPTION_CHOICE)
        buf_printf(out, "One of: %s.\n", row->choices);
    if (row->type != OPTION_FLAG && !row->default_text && !is_by_unit(row))
        return;
    buf_append_str(out, "The default is ");
    options_print_man_text(shown_value(row), out);
    buf_append_str(out, ".\n");
}

#define MAN_HEAD                                                                                     \
    ".Dd November 25, 2026\n"                                                                        \
    ".Dt CHATELAINE.CONF 5\n"                                                                        \
    ".Os Chatelaine " CHATELAINE_VERSION "\n"                                                        \
    ".Sh NAME\n"                                                                                     \
    ".Nm chatelaine.conf\n"                                                                          \
    ".Nd settings of Chatelaine's nodes\n"                                                           \
    ".Sh DESCRIPTION\n"                                                                              \
    "The units chatelaine.service and chatelaine@.service start nodes with\n"                        \
    ".Fl \\-settings\n"                                                                              \
    ".Pa /etc/chatelaine/chatelaine.conf ,\n"                                                        \
    "and chatelaine-as-node runs commands with the same.\n"                                          \
    "For the instance NAME of the latter unit,\n"                                                    \
    ".Pa /etc/chatelaine/NAME.conf\n"                                                                \
    "is read after it and wins.\n"                                                                   \
    "Both win over the environment.\n"                                                               \
    "A line is a comment (#) or NAME=value, without blanks around =.\n"                              \
    "A value with blanks or with one of \\e $ ` ; & | < > ( ) stands in single quotes, all of it.\n" \
    "Any other line is refused with its number: export, text behind a value, other variables.\n"     \
    ".Pp\n"                                                                                          \
    "Each variable is also an option of the commands in chatelaine(8).\n"                            \
    "An empty one counts as unset.\n"                                                                \
    ".Sh VARIABLES\n"

#define MAN_TAIL                                                          \
    ".Sh FILES\n"                                                         \
    ".Bl -tag -width Ds\n"                                                \
    ".It Pa /etc/chatelaine/redis\n"                                      \
    "The address of Redis with its password.\n"                           \
    ".It Pa /etc/chatelaine/master-key\n"                                 \
    "The master key; the same on all nodes.\n"                            \
    "Without it, no API key, password or one-time code works any more.\n" \
    ".It Pa /var/log/chatelaine/revocations\n"                            \
    "The revocation log.\n"                                               \
    "Keep it as long as the oldest backup of Redis.\n"                    \
    ".It Pa /var/log/chatelaine/audit.log\n"                              \
    "The audit log; that of chatelaine@NAME.service is audit-NAME.log.\n" \
    ".El\n"                                                               \
    ".Sh SEE ALSO\n"                                                      \
    ".Xr systemd.exec 5 ,\n"                                              \
    ".Xr chatelaine 8\n"

int conf_man_run(const struct command_line *line)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(CONF_MAX_BYTES);

    (void)line;
    buf_append_str(&out, MAN_HEAD);
    for (const struct option_group *group = SERVE_OPTIONS; group->table; group++) {
        if (group->title)
            buf_printf(&out, ".Ss %s\n", group->title);
        buf_append_str(&out, ".Bl -tag -width Ds\n");
        for (size_t i = 0; i < group->table->count; i++)
            if (&group->table->rows[i] != SETTINGS_FILES_ROW)
                put_man_row(&group->table->rows[i], &out);
        buf_append_str(&out, ".El\n");
    }
    buf_append_str(&out, MAN_TAIL);
    return command_print(buf_text(&out));
}

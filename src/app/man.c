#include "app/command_table.h"

#include "app/serve.h"

enum { MAN_MAX_BYTES = 256 * 1024 };

static void put_text(struct buf *out, const char *text)
{
    options_print_man_text(text, out);
    buf_append_char(out, '\n');
}

static bool is_shared(const struct option_table *table)
{
    return table == &SETTINGS_STORE || table == &SETTINGS_KEYS || table == &SETTINGS_LOG;
}

/* It takes all options of 'serve', which are described there. */
static bool takes_those_of_serve(const struct command *command)
{
    for (const struct option_group *group = SERVE_OPTIONS; group->table; group++)
        if (!groups_have(command->groups, group->table))
            return false;
    return command->groups != SERVE_OPTIONS;
}

/* Indented and unfilled. */
static void put_examples(struct buf *out, const struct command *command)
{
    if (!command->examples)
        return;
    buf_append_str(out, ".Bd -literal -offset indent\n");
    put_text(out, command->examples);
    buf_append_str(out, ".Ed\n");
}

static void put_command(struct buf *out, const struct command *command)
{
    buf_printf(out, ".Ss %s", command->name);
    if (command->operands)
        buf_printf(out, command->optional_operand ? " [%s]" : " %s", command->operands);
    buf_append_char(out, '\n');
    put_text(out, command->summary);
    out->len--;
    buf_append_str(out, ".\n");
    if (command->text)
        put_text(out, command->text);
    put_examples(out, command);
    /* Groups that commands share are described once: with 'serve', or after the commands. */
    bool has_serves = takes_those_of_serve(command);
    for (const struct option_group *group = command->groups; group->table; group++)
        if (!is_shared(group->table) && !(has_serves && groups_have(SERVE_OPTIONS, group->table)))
            options_print_man(group->table, out);
    if (has_serves)
        buf_append_str(out, "It also takes the options of serve.\n");
}

static void put_shared(struct buf *out, const char *title, const struct option_table *table)
{
    buf_printf(out, ".Ss %s\n", title);
    options_print_man(table, out);
}

static void put_head(struct buf *out)
{
    buf_append_str(out, ".Dd November 25, 2026\n"
                        ".Dt CHATELAINE 8\n"
                        ".Os Chatelaine " CHATELAINE_VERSION "\n"
                        ".Sh NAME\n"
                        ".Nm chatelaine\n"
                        ".Nd API keys and console sign-in with reliable revocation\n"
                        ".Sh SYNOPSIS\n"
                        ".Nm chatelaine\n"
                        ".Ar command\n"
                        ".Op Ar option ...\n"
                        ".Sh DESCRIPTION\n"
                        "Once a revocation has been answered, no node accepts that key for a request that arrives\n"
                        "later.\n"
                        "All state is in Redis, which must be durable.\n"
                        ".Sh COMMANDS\n");
}

static void put_tail(struct buf *out)
{
    buf_append_str(out,
                   ".Sh ENVIRONMENT\n"
                   "Every option can be set by a variable: the prefix CHATELAINE_, then its name in capitals with\n"
                   "underscores, as in CHATELAINE_REDIS_TIMEOUT_MS.\n"
                   "CHATELAINE_SETTINGS, or\n"
                   ".Fl \\-settings ,\n"
                   "names files with lines of the same form, which are described in\n"
                   ".Xr chatelaine.conf 5 .\n"
                   "They win over the environment, and an option on the command line over both.\n"
                   "Times are written 500ms, 30s, 5min or 12h, and sizes 64KiB, 96MiB or 1GiB; a bare number counts\n"
                   "milliseconds or bytes.\n"
                   ".Sh EXIT STATUS\n"
                   "0: done. 1: failed. 2: wrong usage. 3: Redis or the settings are not fit; doctor says why.\n"
                   ".Sh SIGNALS\n"
                   "SIGTERM and SIGINT let requests finish, then stop the node; a second one stops it at once.\n"
                   "SIGHUP rereads the policy file and reopens the revocation log.\n"
                   ".Sh SEE ALSO\n"
                   ".Xr chatelaine.conf 5\n");
}

int man_run(const struct command_line *line)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(MAN_MAX_BYTES);

    put_head(&out);
    for (const struct command *command = line->commands; command->name; command++)
        if (!command->hidden)
            put_command(&out, command);
    buf_append_str(&out, ".Sh SHARED OPTIONS\n");
    put_shared(&out, "Redis", &SETTINGS_STORE);
    put_shared(&out, "Keys", &SETTINGS_KEYS);
    put_shared(&out, "Log", &SETTINGS_LOG);
    put_tail(&out);
    return command_print(buf_text(&out));
}

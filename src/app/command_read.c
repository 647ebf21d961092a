/* From arguments, settings files and environment to a command line. */
#include "app/command_table.h"

#include "base/check.h"
#include "unknown_settings.h"

enum { MISTAKES_MAX_BYTES = 256 * 1024 };

static size_t row_count(const struct option_table *tables, size_t count)
{
    size_t rows = 0;

    for (size_t i = 0; i < count; i++)
        rows += tables[i].count;
    return rows;
}

/* The tables of the command's groups; returns how many. */
static size_t list_tables(const struct command *command, struct option_table ret_tables[COMMAND_GROUPS_MAX])
{
    size_t count = 0;

    for (; command->groups[count].table; count++) {
        CHECK(count < COMMAND_GROUPS_MAX);
        ret_tables[count] = *command->groups[count].table;
    }
    CHECK(row_count(ret_tables, count) <= OPTION_ROWS_MAX);
    return count;
}

/* Fills the line from all sources, and finds every mistake in them. */
static bool read_settings(const struct command *command, int argc, char **argv, struct command_line *line,
                          struct buf *mistakes)
{
    struct option_table tables[COMMAND_GROUPS_MAX];
    size_t count = list_tables(command, tables);
    const char *paths = options_peek(SETTINGS_FILES_ROW, argc, argv);
    bool is_read = !paths || settings_files_read(&line->files, paths, mistakes);

    is_read &= options_read_with_origins(tables, count, &line->files.assigned, line, argc, argv, &line->operand_count,
                                         line->origins, mistakes);
    unknown_settings_find(&line->files.assigned, &line->unknown);
    line->settings.unknown = &line->unknown;
    return is_read;
}

static int refuse(const struct command *command, const struct settings *settings, struct buf *mistakes)
{
    if (command->judge)
        command->judge(settings, mistakes);
    return command_refuse(buf_text(mistakes));
}

static int check_operands(const struct command *command, int count, char **operands)
{
    int most = !command->operands ? 0 : command->operand_count ? command->operand_count : 1;

    if (count > most && !command->many_operands)
        return command_fail(EXIT_USAGE, "unexpected argument '%s' for '%s'; see 'chatelaine %s --help'", operands[most],
                            command->name, command->name);
    if (count < most && !command->optional_operand)
        return command_fail(EXIT_USAGE, "'%s' needs %s; see 'chatelaine %s --help'", command->name, command->operands,
                            command->name);
    return EXIT_DONE;
}

int command_read(const struct command *command, int argc, char **argv, struct command_line *ret_line)
{
    struct buf mistakes CLEANUP(buf_wipe) = BUF_UP_TO(MISTAKES_MAX_BYTES);
    int code;

    *ret_line = (struct command_line){.command = command, .operands = argv};
    code = read_settings(command, argc, argv, ret_line, &mistakes)
               ? check_operands(command, ret_line->operand_count, argv)
               : refuse(command, &ret_line->settings, &mistakes);
    if (code != EXIT_DONE)
        command_line_finish(ret_line);
    return code;
}

void command_line_finish(struct command_line *line)
{
    settings_files_finish(&line->files);
}

/* Reads the arguments, runs one command, and returns its exit code. */
#include "app/command_table.h"

#include "app/process.h"

#include <string.h>

enum { HELP_MAX_BYTES = 64 * 1024 };

#define CONNECTION "connection" /* a subject of help, not a command */

static bool is_any_of(const char *argument, const char *a, const char *b)
{
    return strcmp(argument, a) == 0 || strcmp(argument, b) == 0;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_any_of(argv[i], "--help", "-h"))
            return true;
    return false;
}

/* command: NULL lists the commands of the group, or all if group is NULL too. */
static int print_help(const struct command *command, const char *group)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(HELP_MAX_BYTES);

    if (command)
        command_print_help(command, &out);
    else if (group && strcmp(group, CONNECTION) == 0)
        connection_print_help(&out);
    else
        commands_print_help(COMMANDS, group, &out);
    return command_print(buf_text(&out));
}

static int refuse_unknown(const char *word, const char *next)
{
    const bool is_group = command_is_group(COMMANDS, text_of(word));
    const struct command *meant = is_group ? command_suggest_in(COMMANDS, word, next) : command_suggest(COMMANDS, word);

    if (is_group && meant)
        return command_fail(
            EXIT_USAGE, "there is no command '%s %s'; did you mean '%s'? 'chatelaine %s --help' lists those of '%s'",
            word, next, meant->name, word, word);
    if (is_group)
        return command_fail(EXIT_USAGE, "there is no command '%s %s'; 'chatelaine %s --help' lists those of '%s'", word,
                            next, word, word);
    if (meant)
        return command_fail(EXIT_USAGE,
                            "there is no command '%s'; did you mean '%s'? 'chatelaine --help' lists all commands", word,
                            meant->name);
    return command_fail(EXIT_USAGE, "there is no command '%s'; 'chatelaine --help' lists all commands", word);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct command_line line;
    int code;

    if (asks_for_help(argc, argv))
        return print_help(command, NULL);
    code = command_read(command, argc, argv, &line);
    if (code != EXIT_DONE)
        return code;
    if (command->logs)
        log_configure((enum log_level)line.settings.log_level, (enum log_format)line.settings.log_format);
    else
        log_configure(LOG_ERROR, LOG_LOGFMT);
    process_harden();
    line.commands = COMMANDS;
    code = command->run(&line);
    command_line_finish(&line);
    return code;
}

/* Checks for the instructions that CHATELAINE_X86_64_LEVEL lets the compiler use. Old virtual CPU models lack them, and
 * the process would be killed at some instruction without an explanation. */
static bool processor_fits(void)
{
#ifdef __SSE4_2__
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
#else
    return true;
#endif
}

/* Help on a subject, or a list of the commands that begin with this word. */
static bool is_help_subject(const char *word, bool is_help)
{
    return command_is_group(COMMANDS, text_of(word)) || (is_help && strcmp(word, CONNECTION) == 0);
}

/* argv: without the program's name; not empty, and not "help" alone. */
static int dispatch(int argc, char **argv)
{
    bool is_help = strcmp(argv[0], "help") == 0;
    int words, code;

    argc -= is_help;
    argv += is_help;
    const struct command *command = command_find(COMMANDS, argc, argv, &words);
    if (command)
        return is_help ? print_help(command, NULL) : run(command, argc - words, argv + words);
    if (!is_help_subject(argv[0], is_help) || (argc > 1 && !is_help && !asks_for_help(argc - 1, argv + 1)))
        return refuse_unknown(argv[0], argc > 1 ? argv[1] : "");
    code = print_help(NULL, argv[0]);
    return code == EXIT_DONE && !is_help && argc == 1 ? EXIT_USAGE : code;
}

int main(int argc, char **argv)
{
    process_keep_standard_files();
    if (!processor_fits())
        return command_fail(EXIT_UNFIT,
                            "this build needs SSE4.2 (x86-64-v2), which this processor lacks: give the virtual machine "
                            "a newer CPU model, or build with -DCHATELAINE_X86_64_LEVEL=v1");
    if (argc < 2) {
        (void)print_help(NULL, NULL);
        return EXIT_USAGE;
    }
    if (is_any_of(argv[1], "--version", "version") || is_any_of(argv[1], "-V", "-v"))
        return command_print(TEXT("chatelaine " CHATELAINE_VERSION "\n"));
    if (is_any_of(argv[1], "--help", "-h") || (argc == 2 && strcmp(argv[1], "help") == 0))
        return print_help(NULL, NULL);
    return dispatch(argc - 1, argv + 1);
}

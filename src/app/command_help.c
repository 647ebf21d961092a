/* Finds commands by their words, and prints their help. */
#include "app/command_table.h"

#include <string.h>

/* The number of arguments that spell the name; 0 if they do not. */
static int words_matching(const char *name, int argc, char **argv)
{
    struct text rest = text_of(name), word;
    int words = 0;

    for (; text_next(&rest, ' ', &word); words++)
        if (words >= argc || !text_equal(word, text_of(argv[words])))
            return 0;
    return words;
}

const struct command *command_find(const struct command *commands, int argc, char **argv, int *ret_words)
{
    for (; commands->name; commands++)
        if ((*ret_words = words_matching(commands->name, argc, argv)) > 0)
            return commands;
    return NULL;
}

static size_t common_prefix(const char *a, const char *b)
{
    size_t length = 0;

    while (a[length] && a[length] == b[length])
        length++;
    return length;
}

const struct command *command_suggest(const struct command *commands, const char *word)
{
    const struct command *nearest = NULL;
    size_t longest = 0;

    for (; commands->name; commands++) {
        size_t length = commands->hidden ? 0 : common_prefix(commands->name, word);
        if (length <= longest)
            continue;
        longest = length;
        nearest = commands;
    }
    return nearest;
}

static bool is_in_group(const struct command *command, struct text group)
{
    struct text rest = text_of(command->name), word;

    return text_next(&rest, ' ', &word) && rest.len && text_equal(word, group);
}

const struct command *command_suggest_in(const struct command *commands, const char *first, const char *second)
{
    const struct command *nearest = NULL;
    struct text_guess guess = {.written = text_of(second)};
    const char *found = NULL;

    for (; commands->name; commands++) {
        if (commands->hidden || !is_in_group(commands, text_of(first)))
            continue;
        text_guess_try(&guess, commands->name + strlen(first) + 1);
        nearest = guess.found != found ? commands : nearest;
        found = guess.found;
    }
    return nearest;
}

bool command_is_group(const struct command *commands, struct text word)
{
    for (; commands->name; commands++)
        if (is_in_group(commands, word))
            return true;
    return false;
}

void commands_print_help(const struct command *commands, const char *group, struct buf *out)
{
    buf_append_str(out, "Chatelaine " CHATELAINE_VERSION
                        ": API keys and console sign-in. A revoked key is refused by every node.\n"
                        "\n"
                        "Usage: chatelaine COMMAND [OPTION…]\n"
                        "\n"
                        "Commands:\n");
    for (; commands->name; commands++)
        if (!commands->hidden && (!group || is_in_group(commands, text_of(group))))
            buf_printf(out, "  %-20s  %s\n", commands->name, commands->summary);
    if (!group)
        buf_append_str(out, "\nStart with 'chatelaine dev'.");
    buf_append_str(out,
                   "\n'chatelaine COMMAND --help' shows a command's options.\n"
                   "Each option can also be set in the environment: --redis-timeout-ms 500 is\n"
                   "CHATELAINE_REDIS_TIMEOUT_MS=500, there or as a line of a file that --settings names. The\n"
                   "command line takes precedence over files, and they over the environment.\n"
                   "Times are written 500ms, 30s, 5min or 12h, and sizes 64KiB, 96MiB or 1GiB.\n"
                   "'chatelaine help connection' shows the options that lead to Redis, 'chatelaine --version' the "
                   "version.\n"
                   "\n"
                   "Exit status: 0 done, 1 failed, 2 wrong usage, 3 Redis or the settings are not fit: see doctor.\n");
}

/* Each line of text, indented. */
static void print_lines(const char *text, struct buf *out)
{
    struct text rest = text_of(text), line;

    while (text_next(&rest, '\n', &line))
        buf_printf(out, "  %.*s\n", TEXT_ARG(line));
}

bool groups_have(const struct option_group *groups, const struct option_table *table)
{
    while (groups->table && groups->table != table)
        groups++;
    return groups->table;
}

/* Help refers to all connection options or none: a command without Redis refuses --redis. */
static bool folds_connection(const struct command *command)
{
    return !command->shows_connection && groups_have(command->groups, &SETTINGS_STORE) &&
           groups_have(command->groups, &SETTINGS_KEYS);
}

static void print_groups(const struct command *command, struct buf *out)
{
    bool has_folded = folds_connection(command);

    for (const struct option_group *group = command->groups; group->table; group++) {
        if (has_folded && (group->table == &SETTINGS_STORE || group->table == &SETTINGS_KEYS))
            continue;
        if (group->title)
            buf_printf(out, "\n%s:\n", group->title);
        options_print_help(group->table, out);
    }
    if (has_folded)
        buf_append_str(out, "\nConnection options (--redis, --master-key-file and others): see 'chatelaine help "
                            "connection'.\n");
}

void command_print_help(const struct command *command, struct buf *out)
{
    bool has_options = command->groups[0].table;

    buf_printf(out, "%s.\n\nUsage: chatelaine %s", command->summary, command->name);
    if (command->operands)
        buf_printf(out, command->optional_operand ? " [%s]" : " %s", command->operands);
    buf_append_str(out, has_options ? " [OPTION…]\n" : "\n");
    if (command->text)
        buf_printf(out, "\n%s\n", command->text);
    if (command->keys == COMMAND_KEYS_KNOWN)
        buf_append_str(out, "\nNeeds the master keys of the store, and refuses others.\n");
    if (command->examples) {
        buf_append_str(out, strchr(command->examples, '\n') ? "\nExamples:\n" : "\nExample:\n");
        print_lines(command->examples, out);
    }
    print_groups(command, out);
}

void connection_print_help(struct buf *out)
{
    buf_append_str(out, "Connection options: where Redis is, and the master keys. Commands that use Redis take all of "
                        "them,\nso a script can pass the same ones to each; 'store copy' alone takes no keys. Or set "
                        "them once in the\nenvironment, for example "
                        "CHATELAINE_REDIS_FILE=/etc/chatelaine/redis.url.\n\nRedis:\n");
    options_print_help(&SETTINGS_STORE, out);
    buf_append_str(out, "\nKeys:\n");
    options_print_help(&SETTINGS_KEYS, out);
}

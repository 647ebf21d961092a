#include "app/command_table.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TestSuite(commands, .fini = leak_guard);

enum { WORDS_MAX = 4 };

/* Splits words at blanks into an argument vector. */
static int split(const char *line, char storage[WORDS_MAX][32], char *argv[WORDS_MAX])
{
    struct text rest = text_of(line), word;
    int argc = 0;

    for (; text_next(&rest, ' ', &word) && argc < WORDS_MAX; argc++) {
        snprintf(storage[argc], 32, "%.*s", TEXT_ARG(word));
        argv[argc] = storage[argc];
    }
    return argc;
}

Test(commands, are_found_by_one_word_or_two)
{
    static const struct {
        const char *line, *name;
        int words;
    } CASES[] = {
        {"serve --listen x", "serve", 1},
        {"dev", "dev", 1},
        {"user list --json", "user list", 2},
        {"user reset-totp", "user reset-totp", 2},
        {"account create", "account create", 2},
        {"key revoke key_1", "key revoke", 2},
        {"user", NULL, 0},
        {"user lists", NULL, 0},
        {"server", NULL, 0},
        {"Serve", NULL, 0},
        {"list user", NULL, 0},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        char storage[WORDS_MAX][32], *argv[WORDS_MAX];
        int words = 0, argc = split(CASES[i].line, storage, argv);
        const struct command *command = command_find(COMMANDS, argc, argv, &words);

        cr_expect_eq(words, CASES[i].words, "%s", CASES[i].line);
        cr_expect_eq(command != NULL, CASES[i].name != NULL, "%s", CASES[i].line);
        if (command && CASES[i].name)
            cr_expect_str_eq(command->name, CASES[i].name);
    }
}

Test(commands, are_suggested_for_what_was_probably_meant)
{
    static const struct {
        const char *word, *name;
    } CASES[] = {{"server", "serve"},  {"accounts", "account create"},
                 {"docter", "doctor"}, {"usr", "user create"},
                 {"xyz", NULL},        {"", NULL}};

    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct command *command = command_suggest(COMMANDS, CASES[i].word);

        cr_expect_eq(command != NULL, CASES[i].name != NULL, "%s", CASES[i].word);
        if (command && CASES[i].name)
            cr_expect_str_eq(command->name, CASES[i].name);
    }
}

Test(commands, are_suggested_within_their_group)
{
    static const struct {
        const char *group, *word, *name;
    } CASES[] = {{"key", "lst", "key list"},    {"key", "revok", "key revoke"},
                 {"key", "fnd", "key find"},    {"user", "list1", "user list"},
                 {"user", "lsit", "user list"}, {"account", "creat", "account create"},
                 {"key", "zzzzzz", NULL},       {"key", "", NULL}};

    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct command *command = command_suggest_in(COMMANDS, CASES[i].group, CASES[i].word);

        cr_expect_eq(command != NULL, CASES[i].name != NULL, "%s %s", CASES[i].group, CASES[i].word);
        if (command && CASES[i].name)
            cr_expect_str_eq(command->name, CASES[i].name);
    }
}

Test(commands, take_their_options_and_operands)
{
    static const struct {
        const char *command, *arguments;
        int code;
    } CASES[] = {
        {"key revoke", "key_1", EXIT_DONE},
        {"key revoke", "--json key_1 --min-replicas=1", EXIT_DONE},
        {"key revoke", "--secret-file -", EXIT_DONE},
        {"key revoke", "--secret-file", EXIT_USAGE},
        {"key find", "--secret-file - --json", EXIT_DONE},
        {"key find", "a", EXIT_USAGE},
        {"key revoke", "", EXIT_DONE},
        {"key revoke", "--account acct_1 --created-by usr_1 --created-before a --unused-since b --scope c --dry-run -y",
         EXIT_DONE},
        {"key revoke", "--from-log a b -", EXIT_DONE},
        {"key revoke", "--from-log", EXIT_DONE},
        {"key show", "", EXIT_USAGE},
        {"key revoke", "--from-log=a", EXIT_USAGE},
        {"totp", "a b", EXIT_USAGE},
        {"key revoke", "key_1 --email a", EXIT_USAGE},
        {"totp", "", EXIT_DONE},
        {"totp", "-", EXIT_DONE},
        {"totp", "--next", EXIT_DONE},
        {"serve", "x", EXIT_USAGE},
        {"serve", "--drain-ms x", EXIT_USAGE},
        {"serve", "--min-replicas -1", EXIT_USAGE},
        {"account list", "--master-key-file f", EXIT_DONE},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        char name_storage[WORDS_MAX][32], *name[WORDS_MAX], storage[WORDS_MAX][32], *argv[WORDS_MAX];
        struct command_line line;
        int words, argc = CASES[i].arguments[0] ? split(CASES[i].arguments, storage, argv) : 0;
        const struct command *command =
            command_find(COMMANDS, split(CASES[i].command, name_storage, name), name, &words);

        cr_assert(command);
        cr_expect_eq(command_read(command, argc, argv, &line), CASES[i].code, "%s %s", CASES[i].command,
                     CASES[i].arguments);
    }
}

Test(commands, list_themselves_but_for_the_hidden)
{
    struct buf out;

    buf_init(&out, 64 * 1024);
    commands_print_help(COMMANDS, NULL, &out);
    buf_append_char(&out, '\0');
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        char row[64];

        snprintf(row, sizeof row, "\n  %s  ", COMMANDS[i].name);
        cr_expect_eq(strstr(out.ptr, row) != NULL, !COMMANDS[i].hidden, "%s", COMMANDS[i].name);
    }
    buf_finish(&out);
}

Test(commands, of_a_group_are_listed_alone)
{
    struct buf out;

    buf_init(&out, 64 * 1024);
    commands_print_help(COMMANDS, "user", &out);
    buf_append_char(&out, '\0');
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        char row[64];

        snprintf(row, sizeof row, "\n  %s  ", COMMANDS[i].name);
        cr_expect_eq(strstr(out.ptr, row) != NULL, strncmp(COMMANDS[i].name, "user ", 5) == 0, "%s", COMMANDS[i].name);
    }
    buf_finish(&out);
    cr_expect(command_is_group(COMMANDS, TEXT("user")));
    cr_expect(command_is_group(COMMANDS, TEXT("master-key")));
    cr_expect_not(command_is_group(COMMANDS, TEXT("serve")));
    cr_expect_not(command_is_group(COMMANDS, TEXT("use")));
    cr_expect_not(command_is_group(COMMANDS, TEXT("")));
}

Test(commands, help_names_every_option_in_lines_that_fit)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        struct buf out;
        struct text rest, line;

        buf_init(&out, 64 * 1024);
        command_print_help(&COMMANDS[i], &out);
        cr_assert_not(out.failed);
        for (const struct option_group *group = COMMANDS[i].groups; group->table; group++) {
            if ((group->table == &SETTINGS_STORE || group->table == &SETTINGS_KEYS) &&
                memmem(out.ptr, out.len, "'chatelaine help connection'", 28))
                continue;
            for (size_t row = 0; row < group->table->count; row++) {
                char option[64];

                const struct option_row *is = &group->table->rows[row];

                if (is->letter)
                    snprintf(option, sizeof option, "\n  -%c, --%s", is->letter, is->name);
                else
                    snprintf(option, sizeof option, "\n  --%s", is->name);
                cr_expect(memmem(out.ptr, out.len, option, strlen(option)), "%s: %s", COMMANDS[i].name, option);
            }
        }
        rest = buf_text(&out);
        while (text_next(&rest, '\n', &line))
            cr_expect_leq(line.len, 120, "%s: %.*s", COMMANDS[i].name, TEXT_ARG(line));
        buf_finish(&out);
    }
}

static const struct option_row *find_row(const struct command *command, struct text name)
{
    for (const struct option_group *group = command->groups; group->table; group++)
        for (size_t row = 0; row < group->table->count; row++)
            if (text_equal(text_of(group->table->rows[row].name), name))
                return &group->table->rows[row];
    return NULL;
}

static bool takes(const struct command *command, const struct option_table *table)
{
    for (size_t row = 0; row < table->count; row++)
        if (!find_row(command, text_of(table->rows[row].name)))
            return false;
    return true;
}

/* Options of a node, of which the help of another command tells, and in which words. */
static const struct {
    const char *command, *words;
} OF_NODES[] = {
    {"key revoke", "nodes wrote (--revocation-log;"},
    {"audit verify", "nodes wrote (--audit-log;"},
};

static bool is_of_nodes(const struct command *command, const char *at)
{
    for (size_t i = 0; i < COUNT(OF_NODES); i++) {
        const char *option = strstr(OF_NODES[i].words, "--");
        size_t before = (size_t)(option - OF_NODES[i].words);

        if (strcmp(command->name, OF_NODES[i].command) == 0 &&
            strncmp(at - before, OF_NODES[i].words, strlen(OF_NODES[i].words)) == 0)
            return true;
    }
    return false;
}

enum { QUOTED_BYTES = 128 };

/* With one blank between words, where the help may have ended a line. */
static void copy_words(const char *from, const char *end, char ret_line[QUOTED_BYTES])
{
    size_t length = 0;

    for (; from < end && length < QUOTED_BYTES - 1; from++)
        if (!strchr(" \n", *from))
            ret_line[length++] = *from;
        else if (length > 0 && ret_line[length - 1] != ' ')
            ret_line[length++] = ' ';
    ret_line[length] = '\0';
}

/* In quotes, behind the name of another command: 'chatelaine master-key --write PATH'. */
static bool is_of_another(const char *help, const char *at, struct text name)
{
    char line[QUOTED_BYTES], storage[WORDS_MAX][32], *argv[WORDS_MAX];
    const char *quote = at;
    int words;

    while (quote > help && !strchr("'.", *quote))
        quote--;
    if (*quote != '\'')
        return false;
    copy_words(quote + 1, at, line);
    bool has_program = strncmp(line, "chatelaine ", strlen("chatelaine ")) == 0;
    int argc = split(line + (has_program ? strlen("chatelaine ") : 0), storage, argv);
    const struct command *other = command_find(COMMANDS, argc, argv, &words);
    return other && find_row(other, name);
}

static void expect_names_its_options(const struct command *command, const char *help)
{
    for (const char *at = strstr(help, "--"); at; at = strstr(at + 2, "--")) {
        struct text name = {at + 2, strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-")};

        cr_expect(find_row(command, name) || is_of_another(help, at, name) || is_of_nodes(command, at), "%s: %.40s",
                  command->name, at);
    }
}

/* Whoever follows the help must not be told that there is no such option. */
Test(commands, help_names_only_options_that_the_command_takes)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        struct buf out;

        buf_init(&out, 64 * 1024);
        command_print_help(&COMMANDS[i], &out);
        buf_append_char(&out, '\0');
        cr_assert_not(out.failed);
        if (strstr(out.ptr, "'chatelaine help connection'"))
            cr_expect(takes(&COMMANDS[i], &SETTINGS_STORE) && takes(&COMMANDS[i], &SETTINGS_KEYS), "%s",
                      COMMANDS[i].name);
        expect_names_its_options(&COMMANDS[i], out.ptr);
        buf_finish(&out);
    }
}

/* It says so of all commands that use Redis but one. */
Test(commands, those_that_use_redis_take_all_connection_options)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (takes(&COMMANDS[i], &SETTINGS_STORE))
            cr_expect_eq(takes(&COMMANDS[i], &SETTINGS_KEYS), strcmp(COMMANDS[i].name, "store copy") != 0, "%s",
                         COMMANDS[i].name);
}

Test(commands, help_on_the_connection_lists_what_others_fold)
{
    struct buf out;

    buf_init(&out, 64 * 1024);
    connection_print_help(&out);
    cr_assert_not(out.failed);
    buf_append_char(&out, '\0');
    for (size_t i = 0; i < SETTINGS_STORE.count + SETTINGS_KEYS.count; i++) {
        const struct option_row *row =
            i < SETTINGS_STORE.count ? &SETTINGS_STORE.rows[i] : &SETTINGS_KEYS.rows[i - SETTINGS_STORE.count];
        char option[64];

        snprintf(option, sizeof option, "\n  --%s", row->name);
        cr_expect(strstr(out.ptr, option), "%s", option);
    }
    buf_finish(&out);
}

enum { EXAMPLE_WORDS_MAX = 24, EXAMPLE_MAX_BYTES = 512 };

/* Splits a line as a shell would: blanks, single quotes, and an end at | > < ; or ). */
static int split_as_shell(char *line, char *argv[EXAMPLE_WORDS_MAX])
{
    int argc = 0;

    for (char *at = line;;) {
        at += strspn(at, " ");
        if (!*at || strchr("|><;)", *at))
            return argc;
        cr_assert_lt(argc, EXAMPLE_WORDS_MAX);
        bool is_quoted = *at == '\'';
        argv[argc++] = at += is_quoted;
        at += strcspn(at, is_quoted ? "'" : " ");
        if (*at)
            *at++ = '\0';
    }
}

static void expect_parses(const struct command *command, struct text example)
{
    char line[EXAMPLE_MAX_BYTES], *argv[EXAMPLE_WORDS_MAX], *start;
    struct command_line read;
    int argc, words = 0;

    snprintf(line, sizeof line, "%.*s", TEXT_ARG(example));
    start = strstr(line, "chatelaine ");
    cr_assert(start, "%s: %s", command->name, line);
    argc = split_as_shell(start, argv);
    cr_expect_eq(command_find(COMMANDS, argc - 1, argv + 1, &words), command, "%s: %.*s", command->name,
                 TEXT_ARG(example));
    cr_expect_eq(command_read(command, argc - 1 - words, argv + 1 + words, &read), EXIT_DONE, "%s: %.*s", command->name,
                 TEXT_ARG(example));
}

Test(commands, have_examples_that_parse)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        struct text rest = text_of(COMMANDS[i].examples), example;

        if (COMMANDS[i].hidden)
            continue;
        cr_expect(COMMANDS[i].examples, "%s has no example", COMMANDS[i].name);
        while (text_next(&rest, '\n', &example))
            expect_parses(&COMMANDS[i], example);
    }
}

Test(commands, note_where_settings_came_from)
{
    char option[] = "--lease-ms=2s", *argv[] = {option};
    const struct command *command =
        command_find(COMMANDS, 2, (char *[]){(char[]){"config"}, (char[]){"show"}}, &(int){0});
    struct command_line line;
    size_t at = command->groups[0].table->count;

    setenv("CHATELAINE_LISTEN", "127.0.0.1:1", 1);
    cr_assert_eq(command_read(command, 1, argv, &line), EXIT_DONE);
    for (size_t i = 0; i < SETTINGS_NODE.count; i++) {
        const char *name = SETTINGS_NODE.rows[i].name;
        int expected = strcmp(name, "lease-ms") == 0 ? OPTION_FROM_ARGUMENT
                       : strcmp(name, "listen") == 0 ? OPTION_FROM_ENVIRONMENT
                                                     : OPTION_FROM_DEFAULT;

        cr_expect_eq(line.origins[at + i], expected, "%s", name);
    }
}

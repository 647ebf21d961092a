/* What each command does with master keys that the store does not know, by its row in the table of commands (enum
 * command_keys). Every command that opens a store is run. */
#include "app/command_table.h"

#include "deadline.h"
#include "leak_guard.h"
#include "process.h"
#include "redis_server.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = 24, OUTPUT_BYTES = 64 * 1024 };

#define KNOWN_KEY "00000000000000000000000000000000000000000000000000000000000000aa\n"
#define UNKNOWN_KEY "00000000000000000000000000000000000000000000000000000000000000bb\n"
#define NEXT_KEY "00000000000000000000000000000000000000000000000000000000000000cc\n"
#define ORIGIN "--public-origin https://console.test"
#define NOBODY "--email nobody@clinic.example"

/* @1, @2 and @3: accounts. In the order of COMMANDS, except for store copy, after which nothing is there. */
static const struct row {
    const char *command, *arguments;
    enum need { ANY, KNOWN, STRICT, ROTATE, JUDGED } need; /* STRICT: KNOWN with these options, otherwise ANY */
} ROWS[] = {
    {"serve", "--listen 127.0.0.1:0 --internal-listen 127.0.0.1:0 " ORIGIN, KNOWN},
    {"account create", "--name South", KNOWN},
    {"account list", "", ANY},
    {"account suspend", "@2", ANY},
    {"account resume", "@2", KNOWN},
    {"account close", "@3 --yes", ANY},
    {"account close", "@1 --yes --export closed.ndjson", STRICT},
    {"account export", "@1", KNOWN},
    {"user create", "--account @1 --email ada@clinic.example " ORIGIN, KNOWN},
    {"user create", "--account @1 --email eve@clinic.example --password-file password", KNOWN},
    {"user list", "", ANY},
    {"user invite", "--account @1 --email grace@clinic.example " ORIGIN, KNOWN},
    {"user show", NOBODY, KNOWN},
    {"user role", NOBODY " --role developer", KNOWN},
    {"user disable", NOBODY " --yes", KNOWN},
    {"user enable", NOBODY, KNOWN},
    {"user remove", NOBODY " --yes", KNOWN},
    {"user reset", NOBODY " --yes " ORIGIN, KNOWN},
    {"user unlock", NOBODY, KNOWN},
    {"user reset-totp", NOBODY " --yes", KNOWN},
    {"user reset-password", NOBODY " --password-file password", KNOWN},
    {"usage export", "", ANY},
    {"key list", "", ANY},
    {"key show", "key_00000000000000000000000001", ANY},
    {"key find", "--secret-file secrets", KNOWN},
    {"key rename", "key_00000000000000000000000001 Name", KNOWN},
    {"key revoke", "key_00000000000000000000000001", ANY},
    {"key revoke", "--account @1 --yes", ANY},
    {"key revoke", "--secret-file secrets", STRICT},
    {"device list", "", ANY},
    {"device revoke", "dev_00000000000000000000000001", ANY},
    {"session list", "", ANY},
    {"session end", "--user joan@clinic.example", ANY},
    {"audit tail", "", ANY},
    {"audit verify", "secrets", KNOWN},
    {"receipt show", "@2 " ORIGIN, KNOWN},
    {"master-key rotate", "--retired-master-key-file known.key", ROTATE},
    {"status", "", JUDGED},
    {"doctor", ORIGIN, JUDGED},
    {"store accept-loss", "", ANY},
    {"store upgrade", "--yes", ANY},
    {"store lower-lease", "", ANY},
    {"store settle-time", "--yes", ANY},
    {"store copy", "--to @copy", ANY},
};
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS };

static struct redis_server server;
static char folder[PROCESS_PATH_BYTES], copy_url[sizeof server.url + 8], accounts[3][64], output[OUTPUT_BYTES];

/* Running a command in this process */

static const char *meaning_of(const char *word)
{
    if (strcmp(word, "@copy") == 0)
        return copy_url;
    return word[0] == '@' ? accounts[word[1] - '1'] : word;
}

/* Redirects what it prints to a file, because Criterion needs the rest of standard error. */
static int run_captured(const struct command *command, const struct command_line *line)
{
    int was_out = dup(STDOUT_FILENO), was_err = dup(STDERR_FILENO);
    int fd = open("output", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    cr_assert(was_out >= 0 && was_err >= 0 && fd >= 0);
    fflush(NULL);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    int code = command->run(line);
    fflush(NULL);
    dup2(was_out, STDOUT_FILENO);
    dup2(was_err, STDERR_FILENO);
    ssize_t bytes = pread(fd, output, sizeof output - 1, 0);
    output[bytes > 0 ? bytes : 0] = '\0';
    close(was_out);
    close(was_err);
    close(fd);
    return code;
}

static const struct command *command_named(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(COMMANDS[i].name, name) == 0)
            return &COMMANDS[i];
    test_give_up("there is no command '%s'", name);
}

static bool has_options(const struct command *command, const struct option_table *table)
{
    for (const struct option_group *group = command->groups; group->table; group++)
        if (group->table == table)
            return true;
    return false;
}

/* key_file: NULL: without one. 'store copy' takes none. */
static int run(const char *name, const char *arguments, const char *key_file)
{
    char words[256], *argv[WORDS_MAX], *rest = words, *word;
    const struct command *command = command_named(name);
    struct command_line line;
    int argc = 0, used;

    if (!has_options(command, &SETTINGS_KEYS))
        key_file = NULL;
    snprintf(words, sizeof words, "%s%s%s --redis @redis%s%s", name, arguments[0] ? " " : "", arguments,
             key_file ? " --master-key-file " : "", key_file ? key_file : "");
    while ((word = strsep(&rest, " "))) {
        cr_assert_lt(argc, WORDS_MAX);
        argv[argc++] = strdup(strcmp(word, "@redis") == 0 ? server.url : meaning_of(word));
    }
    cr_assert_eq(command_find(COMMANDS, argc, argv, &used), command, "%s", name);
    cr_assert_eq(command_read(command, argc - used, argv + used, &line), EXIT_DONE, "%s %s", name, arguments);
    int code = run_captured(command, &line);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return code;
}

static void run_well(const char *name, const char *arguments)
{
    int code = run(name, arguments, "known.key");

    cr_assert_eq(code, EXIT_DONE, "%s %s: %s", name, arguments, output);
}

/* The store */

static void add_account(size_t number)
{
    static const char CREATED[] = "Account ";

    run_well("account create", "--name North");
    cr_assert_eq(strncmp(output, CREATED, sizeof CREATED - 1), 0, "%s", output);
    snprintf(accounts[number], sizeof accounts[number], "%.*s", (int)strcspn(output + sizeof CREATED - 1, " "),
             output + sizeof CREATED - 1);
}

static void make_store(void)
{
    folder_make(folder);
    cr_assert_eq(chdir(folder), 0);
    file_write("known.key", KNOWN_KEY);
    file_write("unknown.key", UNKNOWN_KEY);
    file_write("next.key", NEXT_KEY);
    file_write("password", "brisk-otter-anvil-47");
    file_write("secrets", "svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV36BX0h\n");
    redis_server_start(&server, NULL);
    snprintf(copy_url, sizeof copy_url, "%s?db=1", server.url);
    for (size_t i = 0; i < 3; i++)
        add_account(i);
    run_well("user create", "--account @1 --email joan@clinic.example --password-file password");
    run_well("account suspend", "@2");
}

static void drop_store(void)
{
    redis_server_stop(&server);
    cr_assert_eq(chdir("/"), 0);
    folder_remove(folder);
    leak_guard();
}

TestSuite(command_keys, .init = make_store, .fini = drop_store, .timeout = TEST_WITHIN_S);

/* Of everything there. */
static void digest(char ret_digest[64])
{
    redis_server_ask(&server, ret_digest, 64, "EVAL",
                     "local all = {} for _, name in ipairs(redis.call('KEYS', '*')) do "
                     "all[#all + 1] = name .. redis.call('DUMP', name) end "
                     "table.sort(all) return redis.sha1hex(table.concat(all))",
                     "0", NULL);
}

/* Walking the table */

static bool must_know(const struct row *row)
{
    return row->need == KNOWN || row->need == STRICT;
}

static bool has_row(const struct command *command)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(ROWS[i].command, command->name) == 0)
            return true;
    return false;
}

/* 'config show' only prints the options. */
Test(command_keys, every_command_with_a_store_says_what_it_needs)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        bool opens = has_options(&COMMANDS[i], &SETTINGS_STORE) && strcmp(COMMANDS[i].name, "config show") != 0;

        cr_expect_eq(COMMANDS[i].keys != COMMAND_KEYS_UNSAID, opens, "%s", COMMANDS[i].name);
        cr_expect_eq(has_row(&COMMANDS[i]), opens, "%s is not tested", COMMANDS[i].name);
    }
}

Test(command_keys, the_table_says_what_commands_do)
{
    static const enum command_keys KEYS[] = {[ANY] = COMMAND_KEYS_ANY,
                                             [KNOWN] = COMMAND_KEYS_KNOWN,
                                             [STRICT] = COMMAND_KEYS_ANY,
                                             [ROTATE] = COMMAND_KEYS_ROTATE,
                                             [JUDGED] = COMMAND_KEYS_JUDGED};

    for (size_t i = 0; i < ROW_COUNT; i++)
        cr_expect_eq(command_named(ROWS[i].command)->keys, KEYS[ROWS[i].need], "%s", ROWS[i].command);
}

static bool is_node(const struct row *row)
{
    return strcmp(row->command, "serve") == 0;
}

static void expect_refused(const struct row *row)
{
    cr_expect_eq(run(row->command, row->arguments, "unknown.key"), EXIT_UNFIT, "%s: %s", row->command, output);
    cr_expect(strstr(output, "This master key is not the one that this store was created with"), "%s: %s", row->command,
              output);
    cr_expect_eq(run(row->command, row->arguments, NULL), EXIT_USAGE, "%s: %s", row->command, output);
}

/* Nothing is begun, sealed or certified with a key that nobody knows. A node reports of itself even where it may not
 * serve, so it comes last. */
Test(command_keys, unknown_ones_are_refused_by_whoever_begins_something)
{
    char before[64], after[64];

    digest(before);
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (must_know(&ROWS[i]) && !is_node(&ROWS[i]))
            expect_refused(&ROWS[i]);
    digest(after);
    cr_expect_str_eq(after, before);
    cr_expect_neq(access("closed.ndjson", F_OK), 0);
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (is_node(&ROWS[i]))
            expect_refused(&ROWS[i]);
}

/* Otherwise the test above would show nothing. */
Test(command_keys, known_ones_are_not_refused)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (!must_know(&ROWS[i]) || is_node(&ROWS[i]))
            continue;
        int code = run(ROWS[i].command, ROWS[i].arguments, "known.key");

        cr_expect(code == EXIT_DONE || code == EXIT_FAILED, "%s: %d, %s", ROWS[i].command, code, output);
    }
}

static void expect_let_in(const struct row *row, const char *key_file)
{
    int code = run(row->command, row->arguments, key_file);

    cr_expect(code == EXIT_DONE || code == EXIT_FAILED, "%s: %d, %s", row->command, code, output);
}

/* Whoever has lost the key can still end what runs. */
Test(command_keys, whoever_ends_something_needs_none)
{
    static const char *const KEY_FILES[] = {NULL, "unknown.key"};

    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < ROW_COUNT; i++)
            if (ROWS[i].need == ANY && (KEY_FILES[k] || strcmp(ROWS[i].command, "store copy") != 0))
                expect_let_in(&ROWS[i], KEY_FILES[k]);
        if (KEY_FILES[k])
            continue;
        cr_expect_eq(run("account list", "", NULL), EXIT_DONE);
        cr_expect(strstr(output, "(suspended)") && strstr(output, "(closed)"), "%s", output);
    }
}

/* In lines of any length. */
static bool has_printed(const char *words)
{
    char *to = output;

    for (const char *from = output; *from; from++)
        if (*from != '\n' && (*from != ' ' || to == output || to[-1] != ' '))
            *to++ = *from;
    *to = '\0';
    return strstr(output, words);
}

/* One rule for all, as serve has it: whoever needs a key refuses such a file, and all others say the same. */
Test(command_keys, a_file_that_others_can_read_is_told_by_all)
{
    static const char SAID[] = "very user of this machine can read it";

    file_write("loose.key", KNOWN_KEY);
    cr_assert_eq(chmod("loose.key", 0444), 0);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &ROWS[i];

        if (!has_options(command_named(row->command), &SETTINGS_KEYS))
            continue;
        if (row->need == ANY)
            expect_let_in(row, "loose.key");
        else
            cr_expect_eq(run(row->command, row->arguments, "loose.key"),
                         strcmp(row->command, "doctor") == 0 ? EXIT_UNFIT : EXIT_USAGE, "%s: %s", row->command, output);
        cr_expect(has_printed(SAID), "%s: %s", row->command, output);
    }
}

Test(command_keys, others_say_what_is_wrong_or_make_them_known)
{
    cr_expect_eq(run("doctor", ORIGIN, "unknown.key"), EXIT_UNFIT);
    cr_expect(strstr(output, "\nfail  master-key "), "%s", output);
    cr_expect_eq(run("status", "", "unknown.key"), EXIT_UNFIT);
    cr_expect(strstr(output, "Redis, master-key: "), "%s", output);
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (ROWS[i].need == ROTATE)
            cr_expect_eq(run(ROWS[i].command, ROWS[i].arguments, "next.key"), EXIT_DONE, "%s", output);
    cr_expect_eq(run("account create", "--name South", "next.key"), EXIT_UNFIT, "the other one is needed: %s", output);
    cr_expect_eq(run("account create", "--name South --retired-master-key-file known.key", "next.key"), EXIT_DONE, "%s",
                 output);
}

#include "base/options.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TestSuite(options, .fini = leak_guard);

struct target {
    const char *redis, *name, *key_file;
    int64_t timeout_ms, offset, count;
    bool unsafe, help;
    int policy, level;
};

static const struct option_row STORE_ROWS[] = {
    {"redis", OPTION_TEXT, offsetof(struct target, redis), "redis://127.0.0.1", 0, 0, NULL, "URL", "Where Redis is."},
    {"redis-timeout-ms", OPTION_INTEGER, offsetof(struct target, timeout_ms), "1000", 1, 60000, NULL, "N",
     "How long a command may take."},
    {"unsafe-redis", OPTION_FLAG, offsetof(struct target, unsafe), NULL, 0, 0, NULL, NULL,
     "Serve with a Redis that may lose acknowledged changes, which endangers every promise that is made here."},
    {"grant-policy", OPTION_CHOICE, offsetof(struct target, policy), "subset", 0, 0, "subset|any|none", NULL,
     "What keys may grant."},
};
static const struct option_row OTHER_ROWS[] = {
    {"name", OPTION_TEXT, offsetof(struct target, name), NULL, 0, 0, NULL, "TEXT", "Its name."},
    {"offset", OPTION_INTEGER, offsetof(struct target, offset), "-5", -10, 10, NULL, NULL, "An offset."},
    {"master-key-file", OPTION_TEXT, offsetof(struct target, key_file), NULL, 0, 0, NULL, "PATH", "The key."},
    {"level", OPTION_CHOICE, offsetof(struct target, level), NULL, 0, 0, "low|high", NULL, "How much."},
    {"count", OPTION_INTEGER, offsetof(struct target, count), NULL, 1, 9, NULL, NULL, "How many."},
    {"help", OPTION_FLAG, offsetof(struct target, help), NULL, 0, 0, NULL, NULL, ".\\Shows this."},
};
static const struct option_table TABLES[] = {{STORE_ROWS, COUNT(STORE_ROWS)}, {OTHER_ROWS, COUNT(OTHER_ROWS)}};

static struct target target;
static char *arguments[16];
static char why[512];
static int rest;

/* Reads a NULL-terminated list of arguments. why receives the error. */
static bool read_options(const char *const *argv)
{
    static char storage[16][128];
    int argc = 0;
    for (; argv[argc]; argc++) {
        cr_assert_lt(strlen(argv[argc]), sizeof storage[0]);
        memcpy(storage[argc], argv[argc], strlen(argv[argc]) + 1);
        arguments[argc] = storage[argc];
    }
    struct buf out;
    buf_init_fixed(&out, why, sizeof why - 1);
    rest = -1;
    memset(&target, 0x5a, sizeof target);
    bool is_read = options_read(TABLES, COUNT(TABLES), &target, argc, arguments, &rest, &out);
    cr_assert_not(out.failed);
    why[out.len] = '\0';
    cr_assert_eq(is_read, out.len == 0, "a sentence on failure, and only then: %s", why);
    return is_read;
}

#define READ(...) read_options((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

Test(options, defaults)
{
    cr_assert(READ());
    cr_assert_str_eq(target.redis, "redis://127.0.0.1");
    cr_assert_eq(target.timeout_ms, 1000);
    cr_assert_eq(target.offset, -5);
    cr_assert_not(target.unsafe);
    cr_assert_eq(target.policy, 0);
    cr_assert_null(target.name);
    cr_assert_eq(target.level, 0);
    cr_assert_eq(target.count, 0, "no default is zero, whatever the range");
    cr_assert_eq(rest, 0);
}

Test(options, both_ways_to_give_a_value)
{
    cr_assert(
        READ("--redis", "unix:/a", "--redis-timeout-ms=5", "--offset", "-7", "--grant-policy", "any", "--level=high"));
    cr_assert_str_eq(target.redis, "unix:/a");
    cr_assert_eq(target.timeout_ms, 5);
    cr_assert_eq(target.offset, -7);
    cr_assert_eq(target.policy, 1);
    cr_assert_eq(target.level, 1);

    cr_assert(READ("--redis=", "--name=a=b"));
    cr_assert_str_eq(target.redis, "");
    cr_assert_str_eq(target.name, "a=b");
}

Test(options, flags_take_no_value_but_with_an_equals_sign)
{
    cr_assert(READ("--unsafe-redis", "false"));
    cr_assert(target.unsafe);
    cr_assert_eq(rest, 1);
    cr_assert(READ("--unsafe-redis=false"));
    cr_assert_not(target.unsafe);
    cr_assert(READ("--unsafe-redis=yes"));
    cr_assert(target.unsafe);
}

Test(options, the_last_of_several_wins)
{
    cr_assert(READ("--name", "a", "--name=b", "--unsafe-redis", "--unsafe-redis=no"));
    cr_assert_str_eq(target.name, "b");
    cr_assert_not(target.unsafe);
}

Test(options, what_is_no_option_moves_to_the_front)
{
    cr_assert(READ("one", "--name", "n", "-", "--unsafe-redis", "two", "--", "--name", "-x"));
    cr_assert_eq(rest, 5);
    static const char *const expected[] = {"one", "-", "two", "--name", "-x"};
    for (int i = 0; i < 5; i++)
        cr_expect_str_eq(arguments[i], expected[i]);
    cr_assert_str_eq(target.name, "n");
    cr_assert(READ("--name", "-x", ""));
    cr_assert_str_eq(target.name, "-x", "only two hyphens make an option of a value");
    cr_assert_eq(rest, 1, "an empty argument is no option");
}

Test(options, environment_stands_between_defaults_and_flags)
{
    setenv("CHATELAINE_REDIS", "unix:/env", 1);
    setenv("CHATELAINE_REDIS_TIMEOUT_MS", "77", 1);
    setenv("CHATELAINE_UNSAFE_REDIS", "1", 1);
    setenv("CHATELAINE_GRANT_POLICY", "none", 1);
    setenv("CHATELAINE_MASTER_KEY_FILE", "/run/key", 1);
    setenv("CHATELAINE_NAME", "", 1);
    cr_assert(READ("--redis-timeout-ms", "5"));
    cr_assert_str_eq(target.redis, "unix:/env");
    cr_assert_eq(target.timeout_ms, 5);
    cr_assert(target.unsafe);
    cr_assert_eq(target.policy, 2);
    cr_assert_str_eq(target.key_file, "/run/key");
    cr_assert_null(target.name, "empty counts as not set");
}

Test(options, a_wrong_environment_is_told_by_its_name)
{
    setenv("CHATELAINE_REDIS_TIMEOUT_MS", "soon", 1);
    cr_assert_not(READ());
    cr_assert_str_eq(why, "CHATELAINE_REDIS_TIMEOUT_MS must be a whole number from 1 to 60000, not \"soon\".");
}

Test(options, refusals_say_what_is_wrong)
{
    static const struct {
        const char *argv[4];
        const char *why;
    } cases[] = {
        {{"--redsi", "x"}, "There is no option --redsi; did you mean --redis?"},
        {{"--redis-timeout", "5"}, "There is no option --redis-timeout; did you mean --redis-timeout-ms?"},
        {{"--Master-Key-File=x"}, "There is no option --Master-Key-File; did you mean --master-key-file?"},
        {{"--colour"}, "There is no option --colour; --help lists all options."},
        {{"--="}, "There is no option --; --help lists all options."},
        {{"-name", "x"}, "There is no option -name; did you mean --name?"},
        {{"-q"}, "There is no option -q; --help lists all options."},
        {{"---name=x"}, "There is no option ---name; did you mean --name?"},
        {{"--an-option-name-that-is-longer-than-any-name-in-any-table-could-be"},
         "There is no option --an-option-name-that-is-longer-than-any-name-in-any-table-could-be; --help lists all "
         "options."},
        {{"--name"}, "--name needs a value."},
        {{"--name", "--help"}, "--name needs a value; one that begins with -- is written --name=--help."},
        {{"--redis-timeout-ms", "0"}, "--redis-timeout-ms must be a whole number from 1 to 60000, not \"0\"."},
        {{"--redis-timeout-ms=60001"}, "--redis-timeout-ms must be a whole number from 1 to 60000, not \"60001\"."},
        {{"--redis-timeout-ms="}, "--redis-timeout-ms must be a whole number from 1 to 60000, not \"\"."},
        {{"--redis-timeout-ms=1s"}, "--redis-timeout-ms must be a whole number from 1 to 60000, not \"1s\"."},
        {{"--redis-timeout-ms=99999999999999999999"},
         "--redis-timeout-ms must be a whole number from 1 to 60000, not \"99999999999999999999\"."},
        {{"--offset=-11"}, "--offset must be a whole number from -10 to 10, not \"-11\"."},
        {{"--offset=--1"}, "--offset must be a whole number from -10 to 10, not \"--1\"."},
        {{"--unsafe-redis=maybe"}, "--unsafe-redis must be true or false, not \"maybe\"."},
        {{"--grant-policy", "all"}, "--grant-policy must be subset, any or none, not \"all\"."},
        {{"--grant-policy=subset|any"}, "--grant-policy must be subset, any or none, not \"subset|any\"."},
        {{"--level="}, "--level must be low or high, not \"\"."},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        cr_expect_not(read_options(cases[i].argv), "case %zu", i);
        cr_expect_str_eq(why, cases[i].why);
    }
}

Test(options, a_default_that_its_own_row_refuses_aborts, .signal = SIGABRT)
{
    static const struct option_row row = {.name = "n", .type = OPTION_INTEGER, .default_text = "7", .max = 5};
    int64_t value[2];
    struct buf out;
    buf_init_fixed(&out, why, sizeof why);
    bool is_read = options_read(&(struct option_table){&row, 1}, 1, value, 0, arguments, &rest, &out);
    cr_assert_not(is_read);
}

static void expect_printed(void (*print)(const struct option_table *, struct buf *), const struct option_table *table,
                           const char *expected)
{
    struct buf out;
    buf_init(&out, 10000);
    print(table, &out);
    buf_append_char(&out, '\0');
    cr_assert_str_eq(out.ptr, expected);
    buf_finish(&out);
}

Test(options, help)
{
    expect_printed(options_print_help, &TABLES[0],
                   "  --redis URL                 Where Redis is. (default redis://127.0.0.1)\n"
                   "  --redis-timeout-ms N        How long a command may take. (default 1000)\n"
                   "  --unsafe-redis              Serve with a Redis that may lose acknowledged changes, which "
                   "endangers every\n"
                   "                              promise that is made here.\n"
                   "  --grant-policy subset|any|none\n"
                   "                              What keys may grant. (default subset)\n");
    expect_printed(options_print_help, &TABLES[1],
                   "  --name TEXT                 Its name.\n"
                   "  --offset N                  An offset. (default -5)\n"
                   "  --master-key-file PATH      The key.\n"
                   "  --level low|high            How much.\n"
                   "  --count N                   How many.\n"
                   "  --help                      .\\Shows this.\n");
}

Test(options, help_counts_characters)
{
    static const struct option_row ROWS[] = {
        {"proxies", OPTION_TEXT, 0, NULL, 0, 0, NULL, "CIDR,…", "Whom to believe."},
        {"at", OPTION_TEXT, 0, NULL, 0, 0, NULL, "–––––––––––––––––––––", "One line: it has 30 characters before."},
        {"ellipses", OPTION_FLAG, 0, NULL, 0, 0, NULL, NULL, "……………………………………………………………………………………………………… ……………… ends it."},
    };
    static const struct option_table TABLE = {ROWS, COUNT(ROWS)};

    expect_printed(options_print_help, &TABLE,
                   "  --proxies CIDR,…            Whom to believe.\n"
                   "  --at –––––––––––––––––––––  One line: it has 30 characters before.\n"
                   "  --ellipses                  ……………………………………………………………………………………………………… ……………… ends it.\n");
}

Test(options, man_page)
{
    expect_printed(options_print_man, &TABLES[1],
                   ".Bl -tag -width Ds\n"
                   ".It Fl \\-name Ar TEXT\nIts name.\n"
                   ".It Fl \\-offset Ar N\nAn offset.\nThe default is \\-5.\n"
                   ".It Fl \\-master\\-key\\-file Ar PATH\nThe key.\n"
                   ".It Fl \\-level Ar low|high\nHow much.\n"
                   ".It Fl \\-count Ar N\nHow many.\n"
                   ".It Fl \\-help\n\\&.\\eShows this.\n"
                   ".El\n");
}

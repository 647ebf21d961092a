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
    const char *redis, *redis_file, *name, *key_file;
    int64_t timeout_ms, offset, count;
    int64_t lease_ms, cache_bytes;
    bool unsafe, help, follow;
    int policy, level;
    const char *only_here;
};

static const struct option_row STORE_ROWS[] = {
    {"redis", OPTION_TEXT, offsetof(struct target, redis), "redis://127.0.0.1", 0, 0, NULL, "URL", "Where Redis is.", 0,
     NULL, false, false},
    {"redis-timeout-ms", OPTION_INTEGER, offsetof(struct target, timeout_ms), "1000", 1, 60000, NULL, "N",
     "How long a command may take.", 0, NULL, false, false},
    {"unsafe-redis", OPTION_FLAG, offsetof(struct target, unsafe), NULL, 0, 0, NULL, NULL,
     "Serve with a Redis that may lose acknowledged changes, which endangers every promise that is made here.", 0, NULL,
     false, false},
    {"grant-policy", OPTION_CHOICE, offsetof(struct target, policy), "subset", 0, 0, "subset|any|none", NULL,
     "What keys may grant.", 0, NULL, false, false},
    {.name = "redis-file",
     .type = OPTION_TEXT,
     .offset = offsetof(struct target, redis_file),
     .instead_of = "redis",
     .help = "A file that says where Redis is."},
};
static const struct option_row OTHER_ROWS[] = {
    {"name", OPTION_TEXT, offsetof(struct target, name), NULL, 0, 0, NULL, "TEXT", "Its name.", 0, NULL, false, false},
    {"offset", OPTION_INTEGER, offsetof(struct target, offset), "-5", -10, 10, NULL, NULL, "An offset.", 0, NULL, false,
     false},
    {"master-key-file", OPTION_TEXT, offsetof(struct target, key_file), NULL, 0, 0, NULL, "PATH", "The key.", 0, NULL,
     false, false},
    {"level", OPTION_CHOICE, offsetof(struct target, level), NULL, 0, 0, "low|high", NULL, "How much.", 0, NULL, false,
     false},
    {"count", OPTION_INTEGER, offsetof(struct target, count), NULL, 1, 9, NULL, NULL, "How many.", 0, NULL, false,
     false},
    {"help", OPTION_FLAG, offsetof(struct target, help), NULL, 0, 0, NULL, NULL, ".\\Shows this.", 0, NULL, false,
     false},
};
static const struct option_row QUANTITY_ROWS[] = {
    {.name = "lease-ms",
     .type = OPTION_TIME,
     .offset = offsetof(struct target, lease_ms),
     .default_text = "1s",
     .min = 10,
     .max = 60000,
     .help = "How long."},
    {.name = "cache-bytes",
     .type = OPTION_SIZE,
     .offset = offsetof(struct target, cache_bytes),
     .default_text = "96MiB",
     .min = 8000,
     .max = 1 << 30,
     .help = "How much."},
    {.name = "follow", .type = OPTION_FLAG, .offset = offsetof(struct target, follow), .letter = 'f', .help = "Go on."},
};
static const struct option_row ARGUMENT_ROWS[] = {
    {.name = "only-here",
     .type = OPTION_TEXT,
     .offset = offsetof(struct target, only_here),
     .is_argument_only = true,
     .help = "What no variable says."},
};
static const struct option_table TABLES[] = {{STORE_ROWS, COUNT(STORE_ROWS)},
                                             {OTHER_ROWS, COUNT(OTHER_ROWS)},
                                             {QUANTITY_ROWS, COUNT(QUANTITY_ROWS)},
                                             {ARGUMENT_ROWS, COUNT(ARGUMENT_ROWS)}};

static struct target target;
static const struct option_assignments *given;
static char *arguments[16];
static char why[1024];
static int rest;
static uint8_t origins[COUNT(STORE_ROWS) + COUNT(OTHER_ROWS) + COUNT(QUANTITY_ROWS) + COUNT(ARGUMENT_ROWS)];

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
    memset(origins, 0x5a, sizeof origins);
    bool is_read =
        options_read_with_origins(TABLES, COUNT(TABLES), given, &target, argc, arguments, &rest, origins, &out);
    cr_assert_not(out.failed);
    why[out.len] = '\0';
    cr_assert_eq(is_read, out.len == 0, "a sentence on failure, and only then: %s", why);
    return is_read;
}

#define READ(...) read_options((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static enum option_origin origin_of(const char *name)
{
    size_t at = 0;

    for (size_t t = 0; t < COUNT(TABLES); t++)
        for (size_t i = 0; i < TABLES[t].count; i++, at++)
            if (strcmp(TABLES[t].rows[i].name, name) == 0)
                return (enum option_origin)origins[at];
    cr_assert_fail("%s", name);
    return OPTION_FROM_DEFAULT;
}

/* What was given nearer wins, whichever form it has; the other one then has no value. */
Test(options, two_forms_of_one_setting)
{
    setenv("CHATELAINE_REDIS_FILE", "/of/the/environment", 1);
    cr_assert(READ());
    cr_expect_str_eq(target.redis_file, "/of/the/environment");
    cr_expect_str_eq(target.redis, "redis://127.0.0.1");
    cr_assert(READ("--redis", "redis://restored"));
    cr_expect_str_eq(target.redis, "redis://restored");
    cr_expect_null(target.redis_file);
    cr_expect_eq(origins[4], OPTION_FROM_DEFAULT);
    cr_assert(READ("--redis-file", "/given"));
    cr_expect_str_eq(target.redis_file, "/given");
    cr_assert_not(READ("--redis-file", "/given", "--redis", "redis://restored"));
    cr_expect_str_eq(why, "--redis and --redis-file are two forms of one setting: give one of them.");
    setenv("CHATELAINE_REDIS", "redis://other", 1);
    cr_assert_not(READ());
    cr_expect_str_eq(why, "CHATELAINE_REDIS and CHATELAINE_REDIS_FILE are two forms of one setting: give one of them.");
    unsetenv("CHATELAINE_REDIS_FILE");
    cr_assert(READ("--redis-file", "/given"));
    cr_expect_str_eq(target.redis_file, "/given");
    cr_expect_str_eq(target.redis, "redis://127.0.0.1");
    unsetenv("CHATELAINE_REDIS");
}

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

Test(options, what_is_for_arguments_alone_has_no_variable)
{
    setenv("CHATELAINE_ONLY_HERE", "variable", 1);
    cr_assert(READ("--count", "1"));
    cr_expect_null(target.only_here);
    cr_assert(READ("--only-here", "argument"));
    cr_expect_str_eq(target.only_here, "argument");
    unsetenv("CHATELAINE_ONLY_HERE");
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

/* Whoever mends settings wants to start once. */
Test(options, every_mistake_is_told_at_once)
{
    setenv("CHATELAINE_REDIS_TIMEOUT_MS", "soon", 1);
    setenv("CHATELAINE_LEVEL", "medium", 1);
    cr_assert_not(READ("--offset=11", "--name", "fits", "--cache-bytes", "1", "--name", "--colour", "--count=0"));
    cr_expect_str_eq(why, "CHATELAINE_REDIS_TIMEOUT_MS must be a whole number from 1 to 60000, not \"soon\".\n"
                          "CHATELAINE_LEVEL must be low or high, not \"medium\".\n"
                          "--offset must be a whole number from -10 to 10, not \"11\".\n"
                          "--cache-bytes must be from 8000 to 1GiB (a whole number and KiB, MiB or GiB; a bare number "
                          "counts bytes), not \"1\".\n"
                          "--name needs a value; one that begins with -- is written --name=--colour.\n"
                          "There is no option --colour; --help lists all options.");
    cr_expect_str_eq(target.name, "fits");
    cr_expect_eq(target.level, 0, "what is wrong changes nothing");
}

static struct option_assignment assignments[] = {{"CHATELAINE_OFFSET", "7", "/etc/a.conf:1"},
                                                 {"CHATELAINE_NAME", "", "/etc/a.conf:2"},
                                                 {"CHATELAINE_OFFSET", "8", "/etc/b.conf:1"},
                                                 {"CHATELAINE_REDIS_FILE", "/of/the/file", "/etc/b.conf:2"},
                                                 {"CHATELAINE_COUNT", "many", "/etc/b.conf:3"}};

Test(options, files_stand_between_environment_and_flags)
{
    const struct option_assignments files = {assignments, 4}, wrong = {assignments, 5};

    given = &files;
    setenv("CHATELAINE_OFFSET", "1", 1);
    setenv("CHATELAINE_NAME", "of the environment", 1);
    setenv("CHATELAINE_REDIS", "redis://of.the.environment", 1);
    cr_assert(READ());
    cr_expect_eq(target.offset, 8, "the last one counts");
    cr_expect_null(target.name, "an empty value takes away that of the environment");
    cr_expect_eq(origin_of("offset"), OPTION_FROM_FILE);
    cr_expect_eq(origin_of("name"), OPTION_FROM_DEFAULT);
    cr_expect_str_eq(options_assigned(&files, &OTHER_ROWS[1])->where, "/etc/b.conf:1");
    cr_expect_null(options_assigned(&files, &OTHER_ROWS[4]));
    cr_expect_str_eq(target.redis_file, "/of/the/file", "of two forms, that of the file");
    cr_expect_str_eq(target.redis, "redis://127.0.0.1");
    cr_assert(READ("--offset=9", "--redis", "redis://given"));
    cr_expect_eq(target.offset, 9);
    cr_expect_str_eq(target.redis, "redis://given");
    cr_expect_null(target.redis_file);
    given = &wrong;
    cr_assert_not(READ());
    cr_expect_str_eq(why, "/etc/b.conf:3: CHATELAINE_COUNT must be a whole number from 1 to 9, not \"many\".");
}

static const char *peek(const char *const *argv)
{
    int argc = 0;

    for (; argv[argc]; argc++)
        arguments[argc] = (char *)argv[argc];
    return options_peek(&OTHER_ROWS[0], argc, arguments);
}
#define PEEK(...) peek((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

Test(options, one_can_be_looked_at_before_the_others)
{
    cr_expect_null(PEEK());
    cr_expect_null(PEEK("--", "--name", "operand"));
    cr_expect_null(PEEK("--names", "x", "-name", "x", "--name"));
    cr_expect_null(PEEK("--name="));
    cr_expect_str_eq(PEEK("--name", "a", "b", "--name=c=d"), "c=d");
    setenv("CHATELAINE_NAME", "env", 1);
    cr_expect_str_eq(PEEK("--offset", "1"), "env");
    cr_expect_str_eq(PEEK("--name=a"), "a");
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

Test(options, times_and_sizes_take_units)
{
    cr_assert(READ());
    cr_expect_eq(target.lease_ms, 1000);
    cr_expect_eq(target.cache_bytes, 96 * 1024 * 1024);
    cr_assert(READ("--lease-ms=500ms", "--cache-bytes", "64KiB"));
    cr_expect_eq(target.lease_ms, 500);
    cr_expect_eq(target.cache_bytes, 65536);
    cr_assert(READ("--lease-ms", "250", "--cache-bytes", "8000"), "a bare number keeps its unit");
    cr_expect_eq(target.lease_ms, 250);
    cr_expect_eq(target.cache_bytes, 8000);
    setenv("CHATELAINE_LEASE_MS", "2s", 1);
    cr_assert(READ());
    cr_expect_eq(target.lease_ms, 2000);
}

Test(options, times_and_sizes_out_of_range_are_refused_in_units)
{
    static const struct {
        const char *argument, *why;
    } CASES[] = {
        {"--lease-ms=2min", "--lease-ms must be from 10ms to 1min (a whole number and ms, s, min, h or d; a bare "
                            "number counts milliseconds), not \"2min\"."},
        {"--lease-ms=9", "--lease-ms must be from 10ms to 1min (a whole number and ms, s, min, h or d; a bare number "
                         "counts milliseconds), not \"9\"."},
        {"--cache-bytes=96Mb", "--cache-bytes must be from 8000 to 1GiB (a whole number and KiB, MiB or GiB; a bare "
                               "number counts bytes), not \"96Mb\"."},
        {"--cache-bytes=99999999999999999999GiB",
         "--cache-bytes must be from 8000 to 1GiB (a whole number and KiB, MiB or GiB; a bare number counts bytes), "
         "not \"99999999999999999999GiB\"."},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        cr_expect_not(READ(CASES[i].argument), "%s", CASES[i].argument);
        cr_expect_str_eq(why, CASES[i].why);
    }
}

Test(options, a_letter_stands_for_a_name)
{
    cr_assert(READ("-f", "x"));
    cr_expect(target.follow);
    cr_expect_eq(rest, 1);
    cr_assert(READ("-f=no"));
    cr_expect_not(target.follow);
    cr_expect_not(READ("-ff"));
    cr_expect_not(READ("--f"));
}

Test(options, say_where_each_value_came_from)
{
    setenv("CHATELAINE_REDIS", "unix:/env", 1);
    setenv("CHATELAINE_OFFSET", "3", 1);
    setenv("CHATELAINE_NAME", "", 1);
    cr_assert(READ("--offset=4", "-f", "--cache-bytes", "96MiB"));
    cr_expect_eq(origin_of("redis"), OPTION_FROM_ENVIRONMENT);
    cr_expect_eq(origin_of("offset"), OPTION_FROM_ARGUMENT, "the command line wins");
    cr_expect_eq(origin_of("follow"), OPTION_FROM_ARGUMENT);
    cr_expect_eq(origin_of("cache-bytes"), OPTION_FROM_ARGUMENT, "even with the default's value");
    cr_expect_eq(origin_of("lease-ms"), OPTION_FROM_DEFAULT);
    cr_expect_eq(origin_of("name"), OPTION_FROM_DEFAULT, "empty counts as not set");
    cr_expect_eq(origin_of("level"), OPTION_FROM_DEFAULT, "without a default too");
}

static void expect_value(const struct option_row *row, const char *expected)
{
    char storage[64];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    options_print_value(row, &target, &out);
    cr_expect(text_equal(buf_text(&out), text_of(expected)), "--%s: %.*s", row->name, TEXT_ARG(buf_text(&out)));
}

Test(options, print_their_values)
{
    cr_assert(READ("--lease-ms=1500", "--cache-bytes=67108864", "-f", "--grant-policy=any", "--offset=-7"));
    expect_value(&STORE_ROWS[0], "redis://127.0.0.1");
    expect_value(&STORE_ROWS[3], "any");
    expect_value(&OTHER_ROWS[0], "");
    expect_value(&OTHER_ROWS[1], "-7");
    expect_value(&QUANTITY_ROWS[0], "1500ms");
    expect_value(&QUANTITY_ROWS[1], "64MiB");
    expect_value(&QUANTITY_ROWS[2], "true");
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
                   "                              What keys may grant. (default subset)\n"
                   "  --redis-file TEXT           A file that says where Redis is.\n");
    expect_printed(options_print_help, &TABLES[1],
                   "  --name TEXT                 Its name.\n"
                   "  --offset N                  An offset. (default -5)\n"
                   "  --master-key-file PATH      The key.\n"
                   "  --level low|high            How much.\n"
                   "  --count N                   How many.\n"
                   "  --help                      .\\Shows this.\n");
}

Test(options, help_of_quantities_and_letters)
{
    expect_printed(options_print_help, &TABLES[2],
                   "  --lease-ms TIME             How long. (default 1s)\n"
                   "  --cache-bytes SIZE          How much. (default 96MiB)\n"
                   "  -f, --follow                Go on.\n");
    expect_printed(options_print_man, &TABLES[2],
                   ".Bl -tag -width Ds\n"
                   ".It Fl \\-lease\\-ms Ar TIME\nHow long.\nThe default is 1s.\n"
                   ".It Fl \\-cache\\-bytes Ar SIZE\nHow much.\nThe default is 96MiB.\n"
                   ".It Fl f , Fl \\-follow\nGo on.\n"
                   ".El\n");
}

Test(options, help_counts_characters)
{
    static const struct option_row ROWS[] = {
        {"proxies", OPTION_TEXT, 0, NULL, 0, 0, NULL, "CIDR,…", "Whom to believe.", 0, NULL, false, false},
        {"at", OPTION_TEXT, 0, NULL, 0, 0, NULL, "–––––––––––––––––––––", "One line: it has 30 characters before.", 0,
         NULL, false, false},
        {"ellipses", OPTION_FLAG, 0, NULL, 0, 0, NULL, NULL, "……………………………………………………………………………………………………… ……………… ends it.",
         0, NULL, false, false},
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

/* 'config show', and what all commands have in common: how they refuse, and what help says. */
#include "cli.h"
#include "base/json.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cli_config, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static const struct json *find_setting(const struct json *document, const char *name)
{
    const struct json *row = json_first(json_member(document, "settings"));

    while (row && !text_equal(json_text(json_member(row, "name")), text_of(name)))
        row = json_next(row);
    cr_assert(row, "no setting %s", name);
    return row;
}

static void expect_setting(const struct json *document, const char *name, const char *value, const char *origin,
                           const char *source)
{
    const struct json *row = find_setting(document, name);
    const struct json *is = json_member(row, "value");

    if (json_type(is) == JSON_STRING)
        cr_expect(text_equal(json_text(is), text_of(value)), "%s: %.*s", name, TEXT_ARG(json_text(is)));
    else
        cr_expect_eq(json_type(is), JSON_NULL, "%s", name);
    cr_expect(text_equal(json_text(json_member(row, "origin")), text_of(origin)), "%s", name);
    cr_expect(text_equal(json_text(json_member(row, "source")), text_of(source)), "%s: %.*s", name,
              TEXT_ARG(json_text(json_member(row, "source"))));
}

static void expect_number(const struct json *document, const char *name, int64_t value)
{
    int64_t is = -1;

    cr_expect(json_integer(json_member(find_setting(document, name), "value"), &is) && is == value, "%s: %lld", name,
              (long long)is);
}

Test(cli_config, values_and_their_sources)
{
    char url_path[PROCESS_PATH_BYTES];
    struct fixture fixture = {0};
    struct cli_run run;

    folder_make(fixture.folder);
    snprintf(url_path, sizeof url_path, "%.150s/redis.url", fixture.folder);
    file_write(url_path, "redis://app:hunter2%40x@db.example:6380/3\n");
    setenv("CHATELAINE_SESSION_IDLE_MS", "45min", 1);
    setenv("CHATELAINE_REDIS", "redis://:hunter2@other.example", 1);
    cli_run_bare(&fixture, &run,
                 (const char *const[]){"config", "show", "--json", "--redis-file", url_path, "--cache-bytes", "1GiB",
                                       "--public-origin=https://console.example.org", NULL});
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_null(strstr(run.out, "hunter2"), "%s", run.out);
    struct json *document = json_parse_object(text_of(run.out), NULL);
    cr_assert(document, "%s", run.out);
    expect_setting(document, "redis", "redis://app:[hidden]@db.example:6380/3", "file", url_path);
    expect_setting(document, "public-origin", "https://console.example.org", "option", "--public-origin");
    expect_setting(document, "listen", "127.0.0.1:8080", "default", "default");
    expect_setting(document, "policy-file", "", "default", "default");
    expect_number(document, "session-idle-ms", 45 * 60 * 1000);
    expect_number(document, "cache-bytes", INT64_C(1) << 30);
    expect_number(document, "lease-ms", 1000);
    json_free(document);
    cli_finish(&run);

    cli_run_bare(&fixture, &run, (const char *const[]){"config", "show", NULL});
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, " CHATELAINE_SESSION_IDLE_MS\n"), "%s", run.out);
    cr_expect(strstr(run.out, "redis://:[hidden]@other.example:6379 "), "%s", run.out);
    cr_expect_null(strstr(run.out, "hunter2"), "%s", run.out);
    cli_finish(&run);
    folder_remove(fixture.folder);
}

/* A trial on a restored copy must not be done to production. */
Test(cli_config, an_address_on_the_command_line_is_the_one)
{
    char url_path[PROCESS_PATH_BYTES];
    struct fixture fixture = {0};
    struct cli_run run;

    folder_make(fixture.folder);
    snprintf(url_path, sizeof url_path, "%.150s/redis.url", fixture.folder);
    file_write(url_path, "redis://production.example:6380\n");
    setenv("CHATELAINE_REDIS_FILE", url_path, 1);
    cli_run_bare(&fixture, &run, (const char *const[]){"config", "show", "--redis", "redis://restored.example", NULL});
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "redis://restored.example:6379 "), "%s", run.out);
    cr_expect_null(strstr(run.out, "production"), "%s", run.out);
    cli_finish(&run);
    setenv("CHATELAINE_REDIS", "redis://restored.example", 1);
    cli_run_bare(&fixture, &run, (const char *const[]){"config", "show", NULL});
    cr_expect_eq(run.exit_code, 2, "%s", run.out);
    cr_expect(strstr(run.err, "CHATELAINE_REDIS and CHATELAINE_REDIS_FILE are two forms of one setting"), "%s",
              run.err);
    cli_finish(&run);
    folder_remove(fixture.folder);
}

/* Whatever is wrong with an address, its password is not shown. */
Test(cli_config, wrong_addresses_keep_their_password)
{
    static const char *const URLS[] = {"redis://:hunter2",
                                       "redis://hunter2@h",
                                       "redis://u:hunter2@",
                                       "rediss:hunter2",
                                       "hunter2@host",
                                       "redis://u:hunter2@h:99999",
                                       "unix:relative?password=hunter2",
                                       "redis-sentinel://u:hunter2@a:1",
                                       "redis://u:hunter2%zz@h",
                                       "redis://u:hunter2@h/x",
                                       "/run/redis.sock?password=hunter2"};
    struct fixture fixture = {0};
    struct cli_run run;

    folder_make(fixture.folder);
    for (size_t i = 0; i < sizeof URLS / sizeof *URLS; i++) {
        cli_run_bare(&fixture, &run, (const char *const[]){"config", "show", "--redis", URLS[i], NULL});
        cr_expect_eq(run.exit_code, 0, "%s: %s", URLS[i], run.err);
        cr_expect(strstr(run.out, "(invalid: 'chatelaine doctor' says why) "), "%s: %s", URLS[i], run.out);
        cr_expect_null(strstr(run.out, "hunter2"), "%s: %s", URLS[i], run.out);
        cli_finish(&run);
    }
    cli_run_bare(&fixture, &run,
                 (const char *const[]){"config", "show", "--redis", "unix:/run/r?db=2&password=hunter2", NULL});
    cr_expect(strstr(run.out, "unix:/run/r?db=2&password=[hidden] "), "%s", run.out);
    cli_finish(&run);
    cli_run_bare(&fixture, &run, (const char *const[]){"config", "show", "--redis", "rediss://u:hunter2@h", NULL});
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "rediss://u:[hidden]@h:6379 "), "%s", run.out);
    cli_finish(&run);
    cli_run_bare(&fixture, &run, (const char *const[]){"config", "show", "--lease-ms", "2 s", NULL});
    cli_expect_refusal(&run, 2, "not \"2 s\".", "a blank");
    folder_remove(fixture.folder);
}

/* What editors and habits leave in a file with one secret: each is named, with the file, and nothing of it is shown. */
Test(cli_config, a_dressed_secret_is_refused_by_what_dresses_it)
{
    static const struct {
        const char *content, *says;
    } CASES[] = {
        {"\"redis://u:hunter2@h\"\n", "redis.url must hold the value alone, without quotes."},
        {"'redis://u:hunter2@h'", "redis.url must hold the value alone, without quotes."},
        {"CHATELAINE_REDIS=redis://u:hunter2@h\r\n", "redis.url must hold the value alone, without NAME= in front."},
        {"\xef\xbb\xbfredis://u:hunter2@h", "redis.url begins with a byte-order mark: save it as UTF-8 without one"},
        {"\xff\xfer", "redis.url is UTF-16: save it as UTF-8"},
        {"http://u:hunter2@h", "redis.url: A Redis address must begin with redis://"},
    };
    char url_path[PROCESS_PATH_BYTES];
    struct fixture fixture = {0};
    struct cli_run run;

    folder_make(fixture.folder);
    snprintf(url_path, sizeof url_path, "%.150s/redis.url", fixture.folder);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        file_write(url_path, CASES[i].content);
        cli_run_bare(&fixture, &run, (const char *const[]){"account", "list", "--redis-file", url_path, NULL});
        cr_expect_null(strstr(run.err, "hunter2"), "%s", run.err);
        cli_expect_refusal(&run, 2, CASES[i].says, CASES[i].content);
    }
    setenv("CHATELAINE_REDIS_FILE", "/nonexistent/redis", 1);
    cli_run_bare(&fixture, &run, (const char *const[]){"account", "list", NULL});
    cli_expect_refusal(&run, 2,
                       "--redis-file: cannot open /nonexistent/redis: No such file or directory; OPERATIONS.md, First "
                       "start, says what it holds.",
                       "no file");
    unsetenv("CHATELAINE_REDIS_FILE");
    file_write(url_path, "redis://u:hunter2@h:1\r\n");
    cli_run_bare(&fixture, &run, (const char *const[]){"config", "show", "--redis-file", url_path, NULL});
    cr_expect(strstr(run.out, " redis://u:[hidden]@h:1 "), "%s%s", run.out, run.err);
    cli_finish(&run);
    remove(url_path);
    cli_run_bare(&fixture, &run, (const char *const[]){"account", "list", "--redis-file", url_path, NULL});
    cli_expect_refusal(&run, 2, "--redis-file: cannot open ", "no file");
    folder_remove(fixture.folder);
}

/* A sentence: "chatelaine: ", no small first letter of a word, one full stop or question mark at the end. */
static void expect_sentences(const struct cli_run *run, const char *what)
{
    struct text rest = text_of(run->err), line;

    cr_expect_str_not_empty(run->err, "%s: no message", what);
    cr_expect_str_empty(run->out, "%s: %s", what, run->out);
    while (text_next(&rest, '\n', &line) && line.len > 0) {
        struct text message;
        size_t word = 0;

        cr_expect(text_starts_with(line, TEXT("chatelaine: ")), "%s: %.*s", what, TEXT_ARG(line));
        message = text_skip(line, strlen("chatelaine: "));
        while (word < message.len && message.ptr[word] >= 'a' && message.ptr[word] <= 'z')
            word++;
        cr_expect(word == 0 || message.ptr[word] != ' ', "%s: %.*s", what, TEXT_ARG(line));
        cr_assert_gt(message.len, 2);
        cr_expect(strchr(".?", message.ptr[message.len - 1]), "%s: %.*s", what, TEXT_ARG(line));
        cr_expect_neq(message.ptr[message.len - 2], '.', "%s: %.*s", what, TEXT_ARG(line));
        cr_expect_not(memmem(message.ptr, message.len, ". (", 3), "%s: %.*s", what, TEXT_ARG(line));
    }
}

enum { NAMES_MAX = 64, NAME_BYTES = 40 };

/* The names of all commands, as --help lists them. */
static size_t list_commands(const struct fixture *fixture, char ret_names[NAMES_MAX][NAME_BYTES])
{
    struct cli_run run;
    struct text rest, line;
    size_t count = 0;

    cli_run_bare(fixture, &run, (const char *const[]){"--help", NULL});
    rest = text_of(run.out);
    while (text_next(&rest, '\n', &line)) {
        const char *gap = line.len > 4 ? memmem(line.ptr + 2, line.len - 2, "  ", 2) : NULL;

        if (!text_starts_with(line, TEXT("  ")) || line.ptr[2] == ' ' || !gap)
            continue;
        cr_assert_lt(count, NAMES_MAX);
        snprintf(ret_names[count++], NAME_BYTES, "%.*s", (int)(gap - line.ptr - 2), line.ptr + 2);
    }
    cli_finish(&run);
    cr_assert_gt(count, 15);
    return count;
}

/* Runs the command with these further arguments. */
static void run_named(const struct fixture *fixture, const char *name, struct cli_run *ret_run, const char *const *more)
{
    char words[NAME_BYTES];
    const char *args[16] = {words};
    size_t count = 1;

    snprintf(words, sizeof words, "%s", name);
    char *blank = strchr(words, ' ');
    if (blank) {
        *blank = '\0';
        args[count++] = blank + 1;
    }
    while (*more)
        args[count++] = *more++;
    cli_run_bare(fixture, ret_run, args);
}

Test(cli_config, every_command_refuses_in_sentences)
{
    static const char *const WRONG[][3] = {{"--frobnicate"}, {"--json=perhaps"}, {"-q"}, {"one", "two"}};
    struct fixture fixture = {0};
    char names[NAMES_MAX][NAME_BYTES];
    struct cli_run run;

    folder_make(fixture.folder);
    size_t count = list_commands(&fixture, names);
    for (size_t i = 0; i < count; i++) {
        for (size_t w = 0; w < sizeof WRONG / sizeof *WRONG; w++) {
            run_named(&fixture, names[i], &run, WRONG[w]);
            cr_expect(run.exit_code == 2 || run.exit_code == 1, "%s %s: %d", names[i], WRONG[w][0], run.exit_code);
            expect_sentences(&run, names[i]);
            cli_finish(&run);
        }
    }
    folder_remove(fixture.folder);
}

/* Commands that need no Redis, or tell what they find instead of failing. */
static bool works_without_redis(const char *name)
{
    static const char *const NAMES[] = {"master-key", "config show", "doctor", "dev", "serve", "status"};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i], name) == 0)
            return true;
    return false;
}

Test(cli_config, every_command_tells_of_a_missing_redis_in_sentences)
{
    struct fixture fixture = {0};
    char names[NAMES_MAX][NAME_BYTES], socket[PROCESS_PATH_BYTES], internal[PROCESS_PATH_BYTES];
    struct cli_run run;

    folder_make(fixture.folder);
    snprintf(socket, sizeof socket, "unix:%.150s/none.sock", fixture.folder);
    snprintf(internal, sizeof internal, "unix:%.150s/none-either.sock", fixture.folder);
    setenv("CHATELAINE_REDIS", socket, 1);
    setenv("CHATELAINE_REDIS_TIMEOUT_MS", "100ms", 1);
    /* For 'ready', which may otherwise find a node of somebody else at the default address. */
    setenv("CHATELAINE_INTERNAL_LISTEN", internal, 1);
    size_t count = list_commands(&fixture, names);
    for (size_t i = 0; i < count; i++) {
        if (works_without_redis(names[i]))
            continue;
        run_named(&fixture, names[i], &run, (const char *const[]){NULL});
        cr_expect(run.exit_code == 2 || run.exit_code == 1, "%s: %d: %s", names[i], run.exit_code, run.out);
        expect_sentences(&run, names[i]);
        cli_finish(&run);
    }
    folder_remove(fixture.folder);
}

Test(cli_config, a_full_disk_is_an_error)
{
    struct fixture fixture = {0};
    struct process process;
    char *err;

    folder_make(fixture.folder);
    int code =
        process_run(&process, fixture.folder, "full",
                    (const char *const[]){"sh", "-c", "exec \"$0\" config show > /dev/full", node_binary(), NULL}, NULL,
                    PATIENCE_MS);
    err = file_read(process.err_path);
    cr_expect_eq(code, 1);
    cr_expect(strstr(err, "Cannot write to standard output: No space left on device."), "%s", err);
    free(err);
    folder_remove(fixture.folder);
}

Test(cli_config, groups_alone_and_version)
{
    struct fixture fixture = {0};
    struct cli_run run;

    folder_make(fixture.folder);
    cli_run_bare(&fixture, &run, (const char *const[]){"key", NULL});
    cr_expect_eq(run.exit_code, 2);
    cr_expect(strstr(run.out, "  key revoke "), "%s", run.out);
    cr_expect_null(strstr(run.out, "  user create "), "%s", run.out);
    cli_finish(&run);
    cli_run_bare(&fixture, &run, (const char *const[]){"user", "--help", NULL});
    cr_expect_eq(run.exit_code, 0);
    cli_finish(&run);
    cli_run_bare(&fixture, &run, (const char *const[]){"user", "frobnicate", NULL});
    cli_expect_refusal(&run, 2, "There is no command 'user frobnicate'", "an unknown one of a group");
    cli_run_bare(&fixture, &run, (const char *const[]){"-V", NULL});
    cr_expect(strstr(run.out, CHATELAINE_VERSION), "%s", run.out);
    cli_finish(&run);
    cli_run_bare(&fixture, &run, (const char *const[]){"help", "connection", NULL});
    cr_expect(strstr(run.out, "\n  --redis-timeout-ms TIME "), "%s", run.out);
    cli_finish(&run);
    cli_run_bare(&fixture, &run, (const char *const[]){"connection", NULL});
    cli_expect_refusal(&run, 2, "no command 'connection'", "a subject is no command");
    cli_run_bare(&fixture, &run, (const char *const[]){"key", "revoke", "key_\x1b[31m", NULL});
    cli_expect_refusal(&run, 2, "'key_\xef\xbf\xbd[31m' is not a key id", "control characters");
    folder_remove(fixture.folder);
}

/* The command line: what scripts rely on (exit codes, --json) and what people read. */
#include "base/clock.h"
#include "base/json.h"
#include "cli.h"
#include "deadline.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

TestSuite(cli, .fini = leak_guard, .timeout = TEST_WITHIN_S);

Test(cli, usage_help_and_version)
{
    static const char *const COMMANDS[][4] = {{"serve", "--help"},          {"account", "create", "--help"},
                                              {"user", "create", "--help"}, {"user", "list", "--help"},
                                              {"key", "revoke", "--help"},  {"doctor", "--help"},
                                              {"totp", "--help"},           {"--help"}};
    struct fixture fixture = {0};
    struct cli_run run;

    folder_make(fixture.folder);
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        cli_run_bare(&fixture, &run, COMMANDS[i]);
        cr_expect_eq(run.exit_code, 0, "%s: %s", COMMANDS[i][0], run.err);
        cr_expect_not_null(strstr(run.out, "chatelaine"), "%s: %s", COMMANDS[i][0], run.out);
        cli_finish(&run);
    }
    cli_run_bare(&fixture, &run, (const char *const[]){"serve", "--help", NULL});
    cr_expect_not_null(strstr(run.out, "--master-key-file"));
    cr_expect_not_null(strstr(run.out, "--redis-timeout-ms"));
    cli_finish(&run);
    cli_run_bare(&fixture, &run, (const char *const[]){"--version", NULL});
    cr_expect_eq(run.exit_code, 0);
    cr_expect_not_null(strstr(run.out, CHATELAINE_VERSION), "%s", run.out);
    cli_finish(&run);
    folder_remove(fixture.folder);
}

Test(cli, wrong_usage_is_exit_code_2)
{
    static const struct {
        const char *args[6];
        const char *says;
    } CASES[] = {
        {{"frobnicate"}, "frobnicate"},
        {{"serve", "--frobnicate"}, "--frobnicate"},
        {{"serve", "--redis-timeout-ms", "soon"}, "redis-timeout-ms"},
        {{"serve", "--redis-timeout-ms", "-1"}, "redis-timeout-ms"},
        {{"serve", "--redis"}, "redis"},
        {{"serve", "--log-format", "xml"}, "log-format"},
        {{"account", "list", "--prefix", "a{7}:"}, "--prefix must not end like that of a partition: a{7}:"},
        {{"account", "list", "--partitions", "3"}, "--partitions 3 is no power of two"},
        {{"user", "frobnicate"}, "user"},
        {{"account", "create"}, "--name"},
        {{"key", "revoke"}, ""},
    };
    struct fixture fixture = {0};
    struct cli_run run;

    folder_make(fixture.folder);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cli_run_bare(&fixture, &run, CASES[i].args);
        cli_expect_refusal(&run, 2, CASES[i].says, CASES[i].args[0]);
    }
    folder_remove(fixture.folder);
}

static void expect_other_partitions(struct fixture *fixture, const char *there, const char *given)
{
    struct cli_run run;
    char says[128];

    snprintf(says, sizeof says, "The store has %s partition%s, not %s, and keeps them for ever: set --partitions %s.",
             there, strcmp(there, "1") == 0 ? "" : "s", given, there);
    setenv("CHATELAINE_PARTITIONS", given, 1);
    RUN(fixture, &run, "account", "create", "--name", "South");
    cli_expect_refusal(&run, 3, says, "a command");
    RUN(fixture, &run, "serve", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", "--public-origin",
        NODE_ORIGIN);
    cli_expect_refusal(&run, 3, says, "a node");
    RUN(fixture, &run, "doctor");
    snprintf(says, sizeof says, "its number of partitions is %s, not %s", there, given);
    cr_expect(run.exit_code == 3 && strstr(run.out, says), "%s", run.out);
    cli_finish(&run);
}

/* On all primaries. */
static long count_founded(const struct fixture *fixture)
{
    char count[16];
    long sum = 0;

    for (const struct redis_server *redis = &fixture->redis; redis; redis = redis->next) {
        redis_server_ask(redis, count, sizeof count, "EVAL", "return #redis.call('KEYS', '*:accounts')", "0", NULL);
        sum += strtol(count, NULL, 10);
    }
    return sum;
}

/* Otherwise a second store would grow beside the first, without its accounts and its keys. */
Test(cli, another_number_of_partitions_is_refused)
{
    static const char *const CASES[][2] = {{"1", "4"}, {"4", "1"}, {"4", "2"}, {"4", "8"}};

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct fixture fixture;

        setenv("CHATELAINE_PARTITIONS", CASES[i][0], 1);
        fixture_start(&fixture, 0, NULL);
        expect_other_partitions(&fixture, CASES[i][0], CASES[i][1]);
        cr_expect_eq(count_founded(&fixture), 1, "nothing was founded beside it");
        fixture_stop(&fixture);
    }
}

/* With an umlaut, in UTF-8. */
#define SOUTH_CLINIC "S\303\274d Zephyrine Zumpano"

Test(cli, accounts_and_users)
{
    char account[64], user[64], uri[512], again[512], code[16], weak[PROCESS_PATH_BYTES];
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    RUN(&fixture, &run, "account", "create", "--name", SOUTH_CLINIC, "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_member(run.out, "id", account, sizeof account);
    cr_expect_eq(strncmp(account, "acct_", 5), 0);
    cli_finish(&run);

    RUN(&fixture, &run, "user", "create", "--account", account, "--email", " Ada@Clinic.TEST", "--password-file",
        fixture.password_path, "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_member(run.out, "id", user, sizeof user);
    cli_member(run.out, "totp_uri", uri, sizeof uri);
    cr_expect_eq(strncmp(uri, "otpauth://totp/", 15), 0, "%s", uri);
    cli_member(run.out, "email", code, sizeof code);
    cr_expect_str_eq(code, "ada@clinic.test");
    cli_finish(&run);

    RUN(&fixture, &run, "user", "create", "--account", account, "--email", "ada@clinic.test", "--password-file",
        fixture.password_path, "--json");
    cli_expect_refusal(&run, 1, "email exists already", "an email twice");

    snprintf(weak, sizeof weak, "%.150s/weak", fixture.folder);
    file_write(weak, "zephyrine-zumpano!");
    RUN(&fixture, &run, "user", "create", "--account", account, "--email", "eve@clinic.test", "--password-file", weak);
    cli_expect_refusal(&run, 1, "your own names", "the account's name, at creation");
    RUN(&fixture, &run, "user", "reset-password", "--email", "ada@clinic.test", "--password-file", weak);
    cli_expect_refusal(&run, 1, "your own names", "the account's name, at a reset");
    file_write(weak, "\xef\xbb\xbf" FIXTURE_PASSWORD);
    RUN(&fixture, &run, "user", "reset-password", "--email", "ada@clinic.test", "--password-file", weak);
    cli_expect_refusal(&run, 1, "begins with a byte-order mark", "what nobody types");

    RUN(&fixture, &run, "user", "list", "--account", account, "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, user), "%s", run.out);
    cr_expect_null(strstr(run.out, "scrypt"), "no hash is shown");
    cli_finish(&run);

    RUN(&fixture, &run, "user", "reset-totp", "--email", "ada@clinic.test", "--yes", "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_member(run.out, "totp_uri", again, sizeof again);
    cr_expect_str_neq(again, uri);
    cli_finish(&run);

    cli_run_bare(&fixture, &run, (const char *const[]){"totp", again, NULL});
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_eq(strspn(run.out, "0123456789"), 6, "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli, what_people_read)
{
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    RUN(&fixture, &run, "user", "create", "--account", fixture.account, "--email", "ada@clinic.test", "--password-file",
        fixture.password_path);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, "otpauth://totp/"), "the address");
    cr_expect_null(strstr(run.out, "\x1b["), "no terminal, no colours");
    cr_expect_null(strstr(run.out, FIXTURE_PASSWORD));
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli, refusals_say_what_to_do)
{
    char weak[PROCESS_PATH_BYTES], readable[PROCESS_PATH_BYTES], address[64];
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    snprintf(weak, sizeof weak, "%.150s/weak", fixture.folder);
    file_write(weak, "short");
    RUN(&fixture, &run, "user", "create", "--account", fixture.account, "--email", "a@b.test", "--password-file", weak);
    cli_expect_refusal(&run, 1, "12", "a short password");
    file_write(weak, "password1234");
    RUN(&fixture, &run, "user", "create", "--account", fixture.account, "--email", "a@b.test", "--password-file", weak);
    cli_expect_refusal(&run, 1, "", "a common password");
    file_write(weak, "zephyrine-zumpano!");
    RUN(&fixture, &run, "user", "create", "--account", fixture.account, "--email", "zephyrine.zumpano@b.test",
        "--password-file", weak);
    cli_expect_refusal(&run, 1, "your own names", "the email");
    file_write(weak, "lantern over grey water");
    cr_assert_eq(chmod(weak, 0644), 0);
    RUN(&fixture, &run, "user", "create", "--account", fixture.account, "--email", "a@b.test", "--password-file", weak);
    cli_expect_refusal(&run, 1, "--password-file", "a password that others may read");
    RUN(&fixture, &run, "user", "unlock", "--email", "nobody@else.test");
    cli_expect_refusal(&run, 1, "nobody@else.test", "an unknown email");
    RUN(&fixture, &run, "user", "create", "--account", "acct_00000000000000000000000000", "--email", "a@b.test",
        "--password-file", fixture.password_path);
    cli_expect_refusal(&run, 1, "account", "an unknown account");
    RUN(&fixture, &run, "user", "create", "--account", fixture.account, "--email", "no-at-sign", "--password-file",
        fixture.password_path);
    cr_expect(run.exit_code == 1 || run.exit_code == 2, "%d", run.exit_code);
    cli_finish(&run);
    RUN(&fixture, &run, "user", "reset-totp", "--email", "nobody@else.test");
    cli_expect_refusal(&run, 1, "nobody@else.test", "an unknown email");
    RUN(&fixture, &run, "key", "revoke", "key_00000000000000000000000000");
    cli_expect_refusal(&run, 1, "no key with this id", "an unknown key");
    RUN(&fixture, &run, "account", "create", "--name", "");
    cr_expect(run.exit_code == 1 || run.exit_code == 2, "%d", run.exit_code);
    cli_finish(&run);

    snprintf(readable, sizeof readable, "%.150s/missing.key", fixture.folder);
    cli_run_bare(&fixture, &run,
                 (const char *const[]){"user", "create", "--account", fixture.account, "--email", "a@b.test",
                                       "--password-file", fixture.password_path, "--redis", fixture.redis.url,
                                       "--master-key-file", readable, NULL});
    cli_expect_refusal(&run, 2, "missing.key", "no master key");
    snprintf(address, sizeof address, "no node answers: 127.0.0.1:%u", fixture.redis.port);
    redis_server_kill(&fixture.redis);
    RUN(&fixture, &run, "account", "create", "--name", "a");
    cli_expect_refusal(&run, 1, fixture_in_cluster() ? address : "redis.sock", "no Redis");
    fixture_stop(&fixture);
}

Test(cli, key_revoke_holds_at_a_running_node)
{
    char first[64], second[64];
    struct fixture fixture;
    struct fixture_key key;
    struct cli_run run;

    fixture_start(&fixture, 1, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    RUN(&fixture, &run, "key", "revoke", key.id, "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_eq(fixture_try_key(&fixture, 0, key.secret), 401);
    cli_member(run.out, "revoked_at", first, sizeof first);
    cli_finish(&run);
    RUN(&fixture, &run, "key", "revoke", key.id, "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_member(run.out, "revoked_at", second, sizeof second);
    cr_expect_str_eq(second, first);
    cli_finish(&run);
    fixture_stop(&fixture);
}

enum { SELECTED_KEYS = 150, OF_MANAGER = 2 };

static void expect_tries(const struct fixture *fixture, const struct fixture_key *keys, size_t count, int status)
{
    for (size_t i = 0; i < count; i++)
        cr_expect_eq(fixture_try_key(fixture, 0, keys[i].secret), status, "%zu", i);
}

static void expect_listed(const char *out, const struct fixture_key *keys, size_t count)
{
    struct json *list = json_parse_object(text_of(out), NULL);
    size_t listed = 0;

    cr_assert(list, "%s", out);
    for (const struct json *key = json_first(json_member(list, "data")); key; key = json_next(key))
        listed++;
    cr_expect_eq(listed, count, "%s", out);
    for (size_t i = 0; i < count; i++)
        cr_expect(strstr(out, keys[i].id), "%s is missing", keys[i].id);
    json_free(list);
}

/* Keys of two accounts; the API made some. Options apply together, and --dry-run changes nothing. */
Test(cli, key_revoke_selects_keys)
{
    static struct fixture_key others[SELECTED_KEYS], of_manager[OF_MANAGER];
    char account[ID_TEXT_BYTES];
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 1, NULL);
    fixture_open_store(&fixture);
    fixture_add_account(&fixture, account);
    for (size_t i = 0; i < SELECTED_KEYS; i++)
        fixture_add_key(&fixture, account, i % 10 ? KEY_API : KEY_DEVICE, MODE_LIVE,
                        i % 10 ? SCOPE_USAGE_READ : SCOPE_DOCUMENTS_WRITE, &others[i]);
    fixture_close_store(&fixture);
    for (size_t i = 0; i < OF_MANAGER; i++)
        fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &of_manager[i]);

    RUN(&fixture, &run, "key", "revoke", "--created-by", fixture.manager.id, "--dry-run");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, of_manager[0].id) && strstr(run.out, "2 keys match."), "%s", run.out);
    cli_finish(&run);
    RUN(&fixture, &run, "key", "revoke", "--account", account, "--dry-run", "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    expect_listed(run.out, others, SELECTED_KEYS);
    cli_finish(&run);
    RUN(&fixture, &run, "key", "revoke", "--descendants", "--account", account);
    cr_expect_eq(run.exit_code, 2, "%s", run.out);
    cli_finish(&run);
    RUN(&fixture, &run, "key", "revoke", "--created-by", fixture.manager.id);
    cr_expect_eq(run.exit_code, 2);
    cr_expect(strstr(run.err, "2 keys are revoked for ever. Without a terminal"), "nobody to ask: %s", run.err);
    cli_finish(&run);
    RUN(&fixture, &run, "key", "revoke", "--created-by", fixture.manager.id, "--account", account, "--yes");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "0 keys match."), "%s", run.out);
    cli_finish(&run);
    for (size_t i = 0; i < 4; i++) {
        RUN(&fixture, &run, "key", "revoke", "--account", account, i < 2 ? "--created-before" : "--unused-since",
            i % 2 ? "1970-01-01T00:00:00Z" : "2001-01-01T00:00:00Z", "--yes");
        cr_expect(strstr(run.out, "0 keys match."), "%zu: %s", i, run.out);
        cli_finish(&run);
    }
    RUN(&fixture, &run, "key", "revoke", "--account", account, "--scope", "org:manage", "--yes", "--json");
    cr_expect_str_eq(run.out, "{\"revoked\":0,\"already_revoked\":0}\n");
    cli_finish(&run);
    expect_tries(&fixture, of_manager, OF_MANAGER, 200);

    RUN(&fixture, &run, "key", "revoke", "--created-by", fixture.manager.id, "--yes");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "2 keys were revoked"), "%s", run.out);
    cli_finish(&run);
    expect_tries(&fixture, of_manager, OF_MANAGER, 401);
    RUN(&fixture, &run, "key", "revoke", "--account", account, "--scope", "usage:read", "--yes", "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "{\"revoked\":135,\"already_revoked\":0}"), "%s", run.out);
    cli_finish(&run);
    RUN(&fixture, &run, "key", "revoke", "--account", account, "--created-before", "2999-01-01T00:00:00Z",
        "--unused-since", "2999-01-01T00:00:00Z", "--yes");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "15 keys were revoked, 0 were revoked already"), "%s", run.out);
    cli_finish(&run);
    expect_tries(&fixture, &fixture.manager, 1, 200);
    fixture_stop(&fixture);
}

/* Both keys are older than the time. The node writes the use when it stops. */
Test(cli, key_revoke_by_unused_since_spares_a_key_that_was_used)
{
    struct fixture_key idle, used;
    char since[CLOCK_RFC3339_BYTES];
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &idle);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &used);
    poll(NULL, 0, 100);
    clock_print_rfc3339(clock_wall_ms(), since);
    poll(NULL, 0, 100);
    fixture_await_key(&fixture, 0, used.secret, 200);
    node_stop(&fixture.nodes[0]);
    RUN(&fixture, &run, "key", "revoke", "--unused-since", since, "--dry-run");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, idle.id), "%s", run.out);
    cr_expect_null(strstr(run.out, used.id), "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

/* As on a terminal, with both outputs together. */
static char *run_on_terminal(const char *folder, const char *command)
{
    const char *const argv[] = {"script", "-qec", command, "/dev/null", NULL};
    struct process process;

    cr_expect_eq(process_run(&process, folder, "terminal", argv, NULL, PATIENCE_MS), 0, "%s", command);
    return file_read(process.out_path);
}

Test(cli, master_key_says_on_a_terminal_where_it_belongs)
{
    char folder[PROCESS_PATH_BYTES], command[2 * PROCESS_PATH_BYTES];
    struct process process;

    folder_make(folder);
    snprintf(command, sizeof command, "'%s' master-key", getenv("CHATELAINE_BINARY"));
    char *shown = run_on_terminal(folder, command);
    cr_expect(strstr(shown, "kept nowhere") && strstr(shown, "--write FILE"), "%s", shown);
    free(shown);
    const char *const argv[] = {getenv("CHATELAINE_BINARY"), "master-key", NULL};
    cr_expect_eq(process_run(&process, folder, "pipe", argv, NULL, PATIENCE_MS), 0);
    char *key = file_read(process.out_path), *said = file_read(process.err_path);
    cr_expect_eq(strspn(key, "0123456789abcdef"), 64, "%s", key);
    cr_expect_str_eq(said, "");
    free(key);
    free(said);
    folder_remove(folder);
}

/* No node can tell a command that it has heard. */
Test(cli, key_revoke_says_why_it_waits_and_how_long)
{
    struct fixture_key key;
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    RUN(&fixture, &run, "key", "revoke", key.id);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.err, "until every lease has ended"), "%s", run.err);
    cr_expect(strstr(run.err, " s at most.\n"), "%s", run.err);
    cli_finish(&run);
    fixture_stop(&fixture);
}

/* The keys are seconds old. */
Test(cli, times_are_taken_as_people_write_them)
{
    static const struct {
        const char *when;
        size_t keys;
        const char *became; /* in the options' words, without the time of day if it is none that is known */
    } CASES[] = {
        {"24h", 0, "unused-since 2"},
        {"yesterday", 0, "T00:00:00Z (yesterday)\n"},
        {"2026-01-31", 0, "unused-since 2026-01-31T00:00:00Z (2026-01-31)\n"},
        {"2026-01-31T12:00:00Z", 0, ""},
        {"2999-01-01", 2, "unused-since 2999-01-01T00:00:00Z (2999-01-01)\n"},
    };
    struct fixture_key key;
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        RUN(&fixture, &run, "key", "revoke", "--unused-since", CASES[i].when, "--dry-run");
        cr_expect_eq(run.exit_code, 0, "%s: %s", CASES[i].when, run.err);
        cr_expect_eq(strstr(run.out, key.id) != NULL, CASES[i].keys > 0, "%s: %s", CASES[i].when, run.out);
        cr_expect(strstr(run.err, CASES[i].became) && (CASES[i].became[0] || !run.err[0]), "%s: %s", CASES[i].when,
                  run.err);
        cli_finish(&run);
    }
    RUN(&fixture, &run, "usage", "export", "--from", "30d", "--to", "yesterday");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.err, "(30d)\n") && strstr(run.err, "(yesterday)\n"), "%s", run.err);
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli, key_revoke_writes_selected_keys_to_the_revocation_log)
{
    char path[PROCESS_PATH_BYTES];
    struct fixture_key key;
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_USAGE_READ, &key);
    snprintf(path, sizeof path, "%.150s/revocations", fixture.folder);
    RUN(&fixture, &run, "key", "revoke", "--scope", "usage:read", "--yes", "--revocation-log", path);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    cr_expect(file_contains(path, key.id) && file_contains(path, fixture.manager.id));
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_USAGE_READ, &key);
    RUN(&fixture, &run, "key", "revoke", "--scope", "usage:read", "--yes", "--revocation-log", "/dev/full");
    cr_expect_eq(run.exit_code, 1);
    cr_expect(strstr(run.err, "Some of these keys could not be added to the revocation log"), "%s", run.err);
    cli_finish(&run);
    fixture_stop(&fixture);
}

/* Redis marks the keys, and then cannot say so. */
Test(cli, key_revoke_names_selected_keys_that_may_still_be_accepted)
{
    struct fixture_key key;
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_USAGE_READ, &key);
    redis_server_tell(&fixture.redis, "SET", fixture_name(fixture.account, "lease_max"), "nonsense", NULL);
    RUN(&fixture, &run, "key", "revoke", "--scope", "usage:read", "--yes", "--json");
    cr_expect_eq(run.exit_code, 1);
    cr_expect(strstr(run.err, "Any of the 2 keys may still be accepted"), "%s", run.err);
    cr_expect(strstr(run.out, "{\"unconfirmed\":[") && strstr(run.out, key.id), "%s", run.out);
    cli_finish(&run);
    redis_server_tell(&fixture.redis, "DEL", fixture_name(fixture.account, "lease_max"), NULL);
    RUN(&fixture, &run, "key", "revoke", key.id);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    fixture_stop(&fixture);
}

/* A variable that was left, and an id that is empty: nothing says which keys. */
Test(cli, no_variable_selects_keys_to_revoke)
{
    static const char *const NAMES[][2] = {{"CHATELAINE_MODE", "live"},
                                           {"CHATELAINE_SCOPE", "usage:read"},
                                           {"CHATELAINE_NAME", "a"},
                                           {"CHATELAINE_UNUSED_SINCE", "1d"}};
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        setenv(NAMES[i][0], NAMES[i][1], 1);
        RUN(&fixture, &run, "key", "revoke", "--yes");
        cli_expect_refusal(&run, 2, "Give the id of a key", NAMES[i][0]);
        unsetenv(NAMES[i][0]);
    }
    fixture_stop(&fixture);
}

/* The store has a key that every list of options would select: the text tells why the command refuses. */
Test(cli, key_revoke_refuses_options_that_make_no_sense)
{
    static const struct {
        const char *args[3], *says;
    } CASES[] = {
        {{"--account", "x"}, "'x' is not"},
        {{"--created-by", "acct_01jd0000000000000000000001"}, "is not the id of a user"},
        {{"--created-before", "tomorrow"}, "--created-before 'tomorrow' is not a time like 90d, 24h, yesterday"},
        {{"--unused-since", "90"}, "--unused-since '90' is not a time"},
        {{"--unused-since", "6m"}, "--unused-since '6m' is not a time"},
        {{"--mode", "test"}, "--mode needs another option that selects keys"},
        {{"--unused-since", "2026-02-30"}, "--unused-since '2026-02-30' is not a time"},
        {{"--scope", "everything"}, "--scope 'everything' is not a scope"},
        {{"--scope", ""}, "--scope '' is not a scope"},
        {{"--scope", "usage:read", "key_01jd0000000000000000000001"}, "or the id of one key"},
        {{"--scope", "usage:read", "--from-log"}, "or --from-log with files"},
        {{"--dry-run", "key_01jd0000000000000000000001"}, "--dry-run needs an option that selects keys"},
        {{"--dry-run", "--from-log", "/dev/null"}, "--dry-run needs an option that selects keys"},
        {{"--dry-run", "--secret-file", "/dev/null"}, "--dry-run needs options that select keys"},
        {{"--yes"}, "Give the id of a key"},
    };
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *const *args = CASES[i].args;
        struct cli_run run;

        RUN(&fixture, &run, "key", "revoke", args[0], args[1], args[1] ? args[2] : NULL);
        cli_expect_refusal(&run, 2, CASES[i].says, args[0]);
    }
    fixture_stop(&fixture);
}

Test(cli, resetting_a_user_ends_the_sessions)
{
    struct fixture_session session;
    struct http_answer answer;
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 1, NULL);
    fixture_add_session(&fixture, NULL, false, &session);
    struct http_call show = {.target = "/v1/console/session", .cookie = session.token};
    cr_assert_eq(fixture_call(&fixture, 0, &show, &answer), 200);
    RUN(&fixture, &run, "user", "reset-password", "--email", fixture.user.email, "--password-file",
        fixture.password_path, "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    cr_expect_eq(fixture_call(&fixture, 0, &show, &answer), 401);
    fixture_stop(&fixture);
}

/* With an error at first, while it loads. */
static void await_answer(const struct redis_server *server)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char reply[64];

    while (!redis_server_try(server, reply, sizeof reply, 1, (const char *const[]){"PING"})) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, 5);
    }
    cr_assert(strncmp(reply, "-LOADING", 8) == 0, "%s", reply);
}

/* Redis answers between the commands that it reads back, every 1,024th of them: after 0.3 s, or some seconds where
 * others keep it from running, and the command must not lose patience before. The command looks 12 s after it began:
 * Redis must listen before, and still be loading then. */
static void expect_loading_is_awaited(void)
{
    struct fixture fixture;
    struct cli_run run;

    fixture_use_one_redis("a command does not wait for a primary that loads while others are ready");
    fixture_start(&fixture, 0, NULL);
    redis_server_tell(&fixture.redis, "EVAL", "for i = 1, 60000 do redis.call('SET', 'filler:' .. i, i) end", "0",
                      NULL);
    fixture.redis.options.load_delay_us = 300;
    redis_server_restart(&fixture.redis);
    await_answer(&fixture.redis);
    RUN(&fixture, &run, "account", "list", "--json", "--redis-timeout-ms", "6000");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.err, "Redis is loading its data."), "%s", run.err);
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli, a_redis_that_loads_its_data_is_waited_for)
{
    expect_loading_is_awaited();
}

/* Their connections are made at different times. */
Test(cli, a_redis_that_loads_many_partitions_is_waited_for)
{
    setenv("CHATELAINE_PARTITIONS", "16", 1);
    expect_loading_is_awaited();
}

Test(cli, doctor_judges)
{
    struct fixture fixture;
    struct cli_run run;

    fixture_use_one_redis("a cluster without replicas is unfit");
    fixture_start(&fixture, 0, NULL);
    RUN(&fixture, &run, "doctor", "--public-origin", NODE_ORIGIN, "--json");
    cr_expect_eq(run.exit_code, 0, "%s%s", run.out, run.err);
    cr_expect_not_null(strstr(run.out, "\"fit\":true"), "%s", run.out);
    cli_finish(&run);
    redis_server_tell_all(&fixture.redis, "CONFIG", "SET", "appendfsync", "everysec", NULL);
    RUN(&fixture, &run, "doctor", "--public-origin", NODE_ORIGIN, "--json");
    cr_expect_eq(run.exit_code, 3);
    cr_expect_not_null(strstr(run.out, "\"fit\":false"), "%s", run.out);
    cr_expect_not_null(strstr(run.out, "appendfsync"), "%s", run.out);
    cli_finish(&run);
    RUN(&fixture, &run, "doctor", "--public-origin", NODE_ORIGIN);
    cr_expect_eq(run.exit_code, 3);
    cr_expect_not_null(strstr(run.out, "appendfsync"), "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli, settings_come_from_the_environment_too)
{
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    setenv("CHATELAINE_REDIS", fixture.redis.url, 1);
    setenv("CHATELAINE_MASTER_KEY_FILE", fixture.master_key_path, 1);
    cli_run_bare(&fixture, &run,
                 (const char *const[]){"account", "create", "--name", "From the environment", "--json", NULL});
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli, key_rename_is_told_to_nodes_and_to_the_trail)
{
    struct http_call whoami = {.method = "GET", .target = "/v1/whoami"};
    struct fixture fixture;
    struct fixture_key key;
    struct http_answer answer;
    struct cli_run run;
    char value[256];

    fixture_start(&fixture, 1, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"old\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", &key);
    whoami.bearer = key.secret;
    cr_assert_eq(fixture_call(&fixture, 0, &whoami, &answer), 200);
    RUN(&fixture, &run, "key", "rename", key.id, "New name");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "has the name New name."), "%s", run.out);
    cli_finish(&run);
    RUN(&fixture, &run, "key", "rename", key.id, "New name", "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_member(run.out, "name", value, sizeof value);
    cr_expect_str_eq(value, "New name");
    cli_finish(&run);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    do {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", answer.body);
        cr_assert_eq(fixture_call(&fixture, 0, &whoami, &answer), 200);
        cr_assert(http_answer_json(&answer, "name", value, sizeof value));
    } while (strcmp(value, "New name") != 0);
    RUN(&fixture, &run, "audit", "tail", "--json");
    const char *event = strstr(run.out, "api_key.renamed");
    cr_assert(event, "%s", run.out);
    cr_expect(strstr(event, "\"from\":\"old\"") && strstr(event, "\"to\":\"New name\""), "%s", event);
    cr_expect_null(strstr(event + 1, "api_key.renamed"), "%s", event);
    cli_finish(&run);

    RUN(&fixture, &run, "key", "rename", key.id);
    cli_expect_refusal(&run, 2, "needs ID NAME", "no name");
    RUN(&fixture, &run, "key", "rename", key.id, "New", "name");
    cli_expect_refusal(&run, 2, "Unexpected argument 'name'", "two names");
    RUN(&fixture, &run, "key", "rename", key.id, "");
    cli_expect_refusal(&run, 2, "NAME", "an empty name");
    RUN(&fixture, &run, "key", "rename", key.id, "operator");
    cli_expect_refusal(&run, 2, "take another", "a name of the trail");
    RUN(&fixture, &run, "key", "rename", "dev_00000000000000000000000000", "Name");
    cli_expect_refusal(&run, 2, "is a device", "a device");
    RUN(&fixture, &run, "key", "rename", "key_00000000000000000000000000", "Name");
    cli_expect_refusal(&run, 1, "no key with this id", "an unknown key");
    fixture_stop(&fixture);
}

/* As through the API: in a trail the key would pass for that person. */
Test(cli, key_rename_refuses_an_email_of_somebody)
{
    static const char *const EMAILS[] = {"ada@example.org", "Ada@Example.org", "\uff41da@example.org"};
    struct fixture fixture;
    struct fixture_user ada;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    fixture_add_person(&fixture, NULL, EMAILS[0], ROLE_OWNER, &ada);
    for (size_t i = 0; i < sizeof EMAILS / sizeof *EMAILS; i++) {
        RUN(&fixture, &run, "key", "rename", fixture.manager.id, EMAILS[i]);
        cli_expect_refusal(&run, 1, "take another", EMAILS[i]);
    }
    RUN(&fixture, &run, "key", "rename", fixture.manager.id, "nobody@example.org");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    fixture_stop(&fixture);
}

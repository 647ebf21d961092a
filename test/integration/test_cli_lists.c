/* The commands that list and end what there is: keys, devices, sessions, users, events. */
#include "cli.h"
#include "base/clock.h"
#include "base/json.h"
#include "deadline.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cli_lists, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

/* The length of "data". */
static size_t count_rows(const char *json)
{
    struct json *document = json_parse_object(text_of(json), NULL);
    size_t rows = 0;

    cr_assert(document, "%s", json);
    for (const struct json *row = json_first(json_member(document, "data")); row; row = json_next(row))
        rows++;
    json_free(document);
    return rows;
}

static void expect_rows(struct fixture *fixture, size_t rows, const char *const *args)
{
    struct cli_run run;

    cli_run(fixture, &run, args, NULL);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_eq(count_rows(run.out), rows, "%s %s %s %s: %s", args[0], args[1], args[2], args[3], run.out);
    cli_finish(&run);
}

#define EXPECT_ROWS(fixture, rows, ...) expect_rows(fixture, rows, (const char *const[]){__VA_ARGS__, "--json", NULL})

/* One document, in which each row is a line, for programs that read JSON and for those that read lines. */
static void expect_row_lines(const char *json, size_t rows)
{
    struct text rest = text_of(json), line;

    cr_expect_eq(count_rows(json), rows);
    cr_expect_eq(count_lines(json), rows + 2, "%s", json);
    cr_expect(text_next(&rest, '\n', &line) && text_equal(line, TEXT("{\"data\":[")), "%s", json);
    for (size_t i = 0; i < rows && text_next(&rest, '\n', &line); i++) {
        const bool has_comma = line.len > 0 && line.ptr[line.len - 1] == ',';
        struct json *row = json_parse_object((struct text){line.ptr, line.len - has_comma}, NULL);

        cr_expect(row, "%.*s", TEXT_ARG(line));
        cr_expect_eq(has_comma, i + 1 < rows, "%.*s", TEXT_ARG(line));
        json_free(row);
    }
    cr_expect_str_eq(rest.ptr, "]}\n");
}

Test(cli_lists, rows_in_json_are_lines)
{
    static const struct {
        const char *args[3];
        size_t rows;
    } CASES[] = {
        {{"key", "list"}, 3},
        {{"key", "revoke", "--mode=any"}, 0}, /* that is no option that selects keys */
        {{"key", "revoke", "--scope=patients:read"}, 3},
        {{"account", "list"}, 2},
        {{"user", "list"}, 1},
    };
    struct fixture_key key;
    struct fixture fixture;
    char account[ID_TEXT_BYTES];

    fixture_start(&fixture, 0, NULL);
    fixture_add_account(&fixture, account);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_PATIENTS_READ, &key);
    fixture_add_key(&fixture, account, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &key);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *const *args = CASES[i].args;
        struct cli_run run;

        RUN(&fixture, &run, args[0], args[1], "--json", args[2], args[2] ? "--dry-run" : NULL);
        cr_expect_eq(run.exit_code, CASES[i].rows > 0 ? 0 : 2, "%s %s: %s", args[0], args[1], run.err);
        if (CASES[i].rows > 0)
            expect_row_lines(run.out, CASES[i].rows);
        cli_finish(&run);
    }
    fixture_stop(&fixture);
}

Test(cli_lists, keys_by_account_mode_status_and_kind)
{
    char other[ID_TEXT_BYTES];
    struct fixture fixture;
    struct fixture_key test_key, device, foreign;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    fixture_add_account(&fixture, other);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_PATIENTS_READ, &test_key);
    fixture_add_key(&fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &device);
    fixture_add_key(&fixture, other, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &foreign);
    fixture_revoke_key(&fixture, &foreign);
    EXPECT_ROWS(&fixture, 4, "key", "list");
    EXPECT_ROWS(&fixture, 1, "key", "list", "--account", other);
    EXPECT_ROWS(&fixture, 1, "key", "list", "--mode", "test");
    EXPECT_ROWS(&fixture, 1, "key", "list", "--status", "revoked");
    EXPECT_ROWS(&fixture, 3, "key", "list", "--status=active");
    EXPECT_ROWS(&fixture, 1, "key", "list", "--device");
    EXPECT_ROWS(&fixture, 1, "device", "list", "--account", fixture.account);
    EXPECT_ROWS(&fixture, 0, "device", "list", "--account", other);

    RUN(&fixture, &run, "key", "list", "--account", other, "--status", "active");
    cr_expect_eq(run.exit_code, 0);
    cr_expect_str_empty(run.out);
    cr_expect_str_eq(run.err, "No key matches.\n");
    cli_finish(&run);
    RUN(&fixture, &run, "key", "list");
    cr_expect_eq(count_lines(run.out), 4, "%s", run.out);
    cr_expect(strstr(run.out, device.id) && strstr(run.out, foreign.id), "%s", run.out);
    cr_expect_null(strstr(run.out, test_key.secret), "no secret");
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli_lists, what_does_not_exist_is_an_error)
{
    static const char NOBODY[] = "acct_00000000000000000000000000";
    static const struct {
        const char *args[5];
        int code;
        const char *says;
    } CASES[] = {
        {{"key", "list", "--account", NOBODY}, 1, "There is no account acct_0"},
        {{"device", "list", "--account", NOBODY}, 1, "There is no account acct_0"},
        {{"session", "list", "--account", NOBODY}, 1, "There is no account acct_0"},
        {{"user", "list", "--account", NOBODY}, 1, "There is no account acct_0"},
        {{"audit", "tail", "--account", NOBODY}, 1, "There is no account acct_0"},
        {{"key", "list", "--account", "acct_x\x1b[2J"}, 2, "is not an account id"},
        {{"key", "list", "--mode", "production"}, 2, "--mode must be any, test or live"},
        {{"key", "show", "key_00000000000000000000000000"}, 1, "There is no key with this id"},
        {{"key", "show", "key_\x1b[2J"}, 2, "is not a key id"},
        {{"key", "show", NOBODY}, 2, "is not a key id"},
        {{"device", "revoke", "dev_00000000000000000000000000"}, 1, "There is no key with this id"},
        {{"device", "revoke", "key_00000000000000000000000000"}, 2, "is not a device"},
        {{"session", "list", "--user", "nobody@else.test"}, 1, "No user has the email"},
        {{"session", "list", "--user", "nobody"}, 2, "is not an email address"},
        {{"session", "end", "--user", "nobody@else.test"}, 1, "No user has the email"},
        {{"session", "end", "sess_AAAAAAAAAAAAAAAAAAAAAA"}, 1, "There is no session"},
        {{"session", "end", "sess_\x1b[2J"}, 2, "is not the id of a session"},
        {{"session", "end", "AAAAAAAAAAAAAAAAAAAAAA"}, 2, "is not the id of a session"},
        {{"session", "end"}, 2, "needs the id of a session"},
        {{"audit", "tail", "-n", "1001"}, 2, "-n must be a whole number from 0 to 1000"},
    };
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cli_run(&fixture, &run, CASES[i].args, NULL);
        cr_expect_null(strchr(run.err, '\x1b'), "%s", CASES[i].args[1]);
        cli_expect_refusal(&run, CASES[i].code, CASES[i].says, CASES[i].args[1]);
    }
    RUN(&fixture, &run, "session", "end", "sess_A", "--user", "ada@clinic.test");
    cli_expect_refusal(&run, 2, "needs the id of a session, or --user", "both");
    fixture_stop(&fixture);
}

Test(cli_lists, a_key_is_shown_without_its_secret)
{
    struct fixture fixture;
    struct fixture_key key;
    struct cli_run run;
    char value[128];

    fixture_start(&fixture, 1, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"S\303\274d\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", &key);
    RUN(&fixture, &run, "key", "show", key.id, "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_member(run.out, "account_id", value, sizeof value);
    cr_expect_str_eq(value, fixture.account);
    cli_member(run.out, "created_by", value, sizeof value);
    cr_expect_str_eq(value, fixture.manager.id, "who made it");
    cli_member(run.out, "last4", value, sizeof value);
    cr_expect_str_eq(value, key.secret + strlen(key.secret) - 4);
    cr_expect(strstr(run.out, "\"scopes\":[\"patients:read\"]"), "%s", run.out);
    cr_expect(strstr(run.out, "\"status\":\"active\""), "%s", run.out);
    cr_expect_null(strstr(run.out, key.secret));
    cli_finish(&run);

    RUN(&fixture, &run, "key", "revoke", key.id);
    cli_finish(&run);
    RUN(&fixture, &run, "key", "show", key.id);
    cr_expect(strstr(run.out, "\nRevoked    20"), "%s", run.out);
    cr_expect(strstr(run.out, "\nLast used  never\n"), "%s", run.out);
    cr_expect(strstr(run.out, "(S\303\274d)\n"), "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

static void schedule(struct fixture *fixture, const struct fixture_key *key, const char *at)
{
    char target[128], json[64];
    struct fixture_session session;
    struct http_answer answer;

    fixture_add_session(fixture, NULL, true, &session);
    snprintf(target, sizeof target, "/v1/console/api_keys/%s/scheduled_revocation", key->id);
    snprintf(json, sizeof json, "{\"revoke_at\":\"%s\"}", at);
    const struct http_call call = {
        .method = "PUT", .target = target, .cookie = session.token, .csrf = session.csrf, .json = json};
    cr_assert_eq(fixture_call(fixture, 0, &call, &answer), 200, "%s", answer.body);
}

static void expect_printed(struct fixture *fixture, const char *const *args, const char *wanted)
{
    struct cli_run run;

    cli_run(fixture, &run, args, NULL);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, wanted), "%s %s lacks %s:\n%s", args[0], args[1], wanted, run.out);
    cli_finish(&run);
}

Test(cli_lists, a_scheduled_revocation_is_told)
{
    char at[CLOCK_RFC3339_BYTES], member[64], line[64];
    struct fixture fixture;
    struct fixture_key key;

    fixture_start(&fixture, 1, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"Ward\",\"mode\":\"live\"}", &key);
    expect_printed(&fixture, (const char *const[]){"key", "show", key.id, "--json", NULL}, "\"revoke_at\":null");
    clock_print_rfc3339(clock_wall_ms() + INT64_C(10) * 24 * 60 * 60 * 1000, at);
    schedule(&fixture, &key, at);
    snprintf(member, sizeof member, "\"revoke_at\":\"%s\",\"revoked_at\":null", at);
    snprintf(line, sizeof line, "\nRevoked    no\nRevoke at  %.19sZ\n", at);
    expect_printed(&fixture, (const char *const[]){"key", "show", key.id, "--json", NULL}, member);
    expect_printed(&fixture, (const char *const[]){"key", "show", key.id, NULL}, line);
    expect_printed(&fixture, (const char *const[]){"key", "list", "--json", NULL}, member);
    expect_printed(&fixture, (const char *const[]){"key", "list", NULL}, "  live  ending   20");
    expect_printed(&fixture, (const char *const[]){"account", "export", fixture.account, NULL}, member);
    expect_printed(&fixture, (const char *const[]){"audit", "tail", "--json", NULL}, "\"actor_kind\":\"user\"");
    fixture_stop(&fixture);
}

/* Each option by itself selects some of the keys, but not all, for both commands. */
Test(cli_lists, key_list_selects_what_key_revoke_does)
{
    struct fixture fixture;
    struct fixture_key reader, manager, made, other;
    char account[ID_TEXT_BYTES];
    struct cli_run listed, revoked;

    fixture_start(&fixture, 1, NULL);
    fixture_add_account(&fixture, account);
    fixture_add_key(&fixture, account, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &other);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_USAGE_READ, &reader);
    fixture_create_key(&fixture, 0, "{\"name\":\"Ward 7\",\"mode\":\"live\",\"scopes\":[\"keys:manage\"]}", &manager);
    fixture_create_key(&fixture, 0, "{\"name\":\"ward 8\",\"mode\":\"live\",\"scopes\":[\"usage:read\"]}", &made);
    node_stop(&fixture.nodes[0]); /* uses are written by then */
    const struct {
        const char *args[3];
        size_t rows;
    } CASES[] = {
        {{"--account", account}, 1},
        {{"--mode=test", "--created-before", "2999-01-01"}, 1},
        {{"--created-by", fixture.manager.id}, 2},
        {{"--created-by", fixture.manager.id, "--descendants"}, 3},
        {{"--created-before", "1h"}, 0},
        {{"--created-before", "2999-01-01"}, 5},
        {{"--unused-since", "yesterday"}, 0},
        {{"--scope", "patients:read"}, 2},
        {{"--name", "WARD"}, 2},
        {{"--name", "ward 8"}, 1},
        {{"--name", "ward 9"}, 0},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *const *args = CASES[i].args;

        RUN(&fixture, &listed, "key", "list", "--status=active", "--json", args[0], args[1], args[2]);
        RUN(&fixture, &revoked, "key", "revoke", "--dry-run", "--json", args[0], args[1], args[2]);
        cr_expect_eq(listed.exit_code, 0, "%s: %s", args[0], listed.err);
        cr_expect_eq(count_rows(listed.out), CASES[i].rows, "%s %s: %s", args[0], args[1], listed.out);
        cr_expect_str_eq(listed.out, revoked.out, "%s %s", args[0], args[1]);
        cli_finish(&listed);
        cli_finish(&revoked);
    }
    RUN(&fixture, &listed, "key", "list", "--descendants");
    cli_expect_refusal(&listed, 2, "--descendants needs --created-by", "key list");
    RUN(&fixture, &listed, "key", "list", "--name", "");
    cli_expect_refusal(&listed, 2, "--name is empty", "key list");
    fixture_stop(&fixture);
}

/* What another program wrote into Redis does not reach the terminal as control characters. */
Test(cli_lists, names_with_control_characters_are_harmless)
{
    struct fixture fixture;
    struct fixture_key key;
    char record[1024], name[256], digest[128];
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &key);
    snprintf(name, sizeof name, "%sid:%s", fixture_name(fixture.account, ""), key.id);
    redis_server_ask(&fixture.redis, digest, sizeof digest, "GET", name, NULL);
    snprintf(name, sizeof name, "%skey:%s", fixture_name(fixture.account, ""), digest);
    snprintf(record, sizeof record, "%s %s live abcd 4 1700000000000 - evil\x1b[2J", key.id, fixture.account);
    redis_server_tell(&fixture.redis, "SET", name, record, NULL);
    RUN(&fixture, &run, "key", "list");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "evil\xef\xbf\xbd[2J"), "%s", run.out);
    cr_expect_null(strchr(run.out, '\x1b'));
    cli_finish(&run);
    RUN(&fixture, &run, "key", "show", key.id);
    cr_expect_null(strchr(run.out, '\x1b'));
    cli_finish(&run);
    fixture_stop(&fixture);
}

/* Keys as an earlier version wrote them, without a seal. */
static void fill_keys(const struct fixture *fixture, const char *count)
{
    static const char SCRIPT[] =
        "for i = 1, tonumber(ARGV[1]) do "
        "local id = string.format('key_01kawt0e8g3m7q5v9x%08d', i) "
        "local digest = string.format('%064d', i) "
        "redis.call('SET', KEYS[1] .. 'key:' .. digest, id .. ' ' .. ARGV[2] .. ' live abcd 4 1700000000000 - k' .. i) "
        "redis.call('SET', KEYS[1] .. 'id:' .. id, digest) "
        "redis.call('ZADD', KEYS[1] .. 'acct:' .. ARGV[2] .. ':keys:ak-live:active', 0, id) "
        "end return 1";

    redis_server_tell(&fixture->redis, "EVAL", SCRIPT, "1", fixture_name(fixture->account, ""), count, fixture->account,
                      NULL);
}

Test(cli_lists, ten_thousand_keys_are_all_listed_in_small_pieces)
{
    char slowest[64];
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    fill_keys(&fixture, "10000");
    redis_server_tell_all(&fixture.redis, "CONFIG", "RESETSTAT", NULL);
    RUN(&fixture, &run, "key", "list", "--account", fixture.account, "--mode", "live");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_eq(count_lines(run.out), 10001, "and the manager");
    cli_finish(&run);
    EXPECT_ROWS(&fixture, 10001, "key", "list");
    /* Never all at once: no command walks the keyspace, and each page is a script of its own. */
    redis_server_ask(&fixture.redis, slowest, sizeof slowest, "EVAL",
                     "local s = redis.call('INFO', 'commandstats') "
                     "return (s:find('cmdstat_keys:') or s:find('cmdstat_scan:')) and 'walked' or "
                     "(tonumber(s:match('cmdstat_zrevrangebylex:calls=(%d+)')) > 200 and 'paged' or s)",
                     "1", fixture_name(fixture.account, ""), NULL);
    cr_expect_str_eq(slowest, "paged");
    fixture_stop(&fixture);
}

static void print_pids(const struct redis_server *server, char *ret_pids, size_t size)
{
    size_t used = 0;

    for (; server; server = server->next)
        used += (size_t)snprintf(ret_pids + used, size - used, " %ld", (long)server->process.pid);
    cr_assert_lt(used, size);
}

Test(cli_lists, a_redis_lost_in_mid_list_is_an_error)
{
    struct fixture fixture;
    struct process process;
    char command[1024], pids[64], *out, *err;

    fixture_start(&fixture, 0, NULL);
    fill_keys(&fixture, "10000");
    print_pids(&fixture.redis, pids, sizeof pids);
    /* The reader stops reading; the list waits for it; then Redis is gone. */
    snprintf(command, sizeof command,
             "(\"$0\" key list --json --redis-timeout-ms 500ms --redis '%s'; echo $? > '%s/status') | "
             "(head -c 100; kill -9%s; cat > '%s/rest')",
             fixture.redis.url, fixture.folder, pids, fixture.folder);
    process_run(&process, fixture.folder, "lost", (const char *const[]){"sh", "-c", command, node_binary(), NULL}, NULL,
                PATIENCE_MS);
    snprintf(command, sizeof command, "%s/status", fixture.folder);
    out = file_read(command);
    err = file_read(process.err_path);
    cr_expect_str_eq(out, "1\n", "%s", err);
    cr_expect(strstr(err, "chatelaine: "), "%s", err);
    free(out);
    free(err);
    snprintf(command, sizeof command, "%s/rest", fixture.folder);
    out = file_read(command);
    cr_expect_null(strstr(out, "]}"), "a list that is cut short must not look whole");
    free(out);
    fixture_stop(&fixture);
}

Test(cli_lists, output_that_goes_nowhere_is_an_error)
{
    static const char *const TARGETS[] = {"> /dev/full", ">&-", "| true"};
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    fill_keys(&fixture, "5000");
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++) {
        struct process process;
        char command[1024], status[PROCESS_PATH_BYTES], *out;

        snprintf(status, sizeof status, "%.150s/status%zu", fixture.folder, i);
        snprintf(command, sizeof command, "(\"$0\" key list --redis '%s'; echo $? > '%s') %s", fixture.redis.url,
                 status, i == 2 ? TARGETS[i] : "");
        if (i < 2)
            snprintf(command, sizeof command, "\"$0\" key list --redis '%s' %s; echo $? > '%s'", fixture.redis.url,
                     TARGETS[i], status);
        process_run(&process, fixture.folder, "nowhere",
                    (const char *const[]){"sh", "-c", command, node_binary(), NULL}, NULL, PATIENCE_MS);
        out = file_read(status);
        cr_expect_str_eq(out, "1\n", "%s", TARGETS[i]);
        free(out);
    }
    fixture_stop(&fixture);
}

Test(cli_lists, a_revoked_device_is_out_at_once)
{
    struct fixture fixture;
    struct fixture_key device;
    struct cli_run run;

    fixture_start(&fixture, 2, NULL);
    fixture_add_key(&fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &device);
    cr_assert_eq(fixture_try_key(&fixture, 0, device.secret), 403, "known, and not allowed to ask this");
    cr_assert_eq(fixture_try_key(&fixture, 1, device.secret), 403);
    RUN(&fixture, &run, "device", "revoke", device.id);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "; no node accepts it."), "%s", run.out);
    cli_finish(&run);
    cr_expect_eq(fixture_try_key(&fixture, 0, device.secret), 401);
    cr_expect_eq(fixture_try_key(&fixture, 1, device.secret), 401);
    fixture_stop(&fixture);
}

static int session_status(const struct fixture *fixture, size_t node, const struct fixture_session *session)
{
    struct http_answer answer;

    return fixture_call(fixture, node, &(struct http_call){.target = "/v1/console/session", .cookie = session->token},
                        &answer);
}

/* The ids of the user's sessions, in no order. */
static size_t session_ids(struct fixture *fixture, const char *email, char ret_ids[4][64])
{
    struct cli_run run;
    size_t count = 0;

    RUN(fixture, &run, "session", "list", "--user", email, "--json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    struct json *document = json_parse_object(text_of(run.out), NULL);
    for (const struct json *row = json_first(json_member(document, "data")); row && count < 4; row = json_next(row))
        snprintf(ret_ids[count++], 64, "%.*s", TEXT_ARG(json_text(json_member(row, "id"))));
    json_free(document);
    cli_finish(&run);
    return count;
}

Test(cli_lists, ended_sessions_are_over_on_every_node)
{
    struct fixture fixture;
    struct fixture_session one, two, three;
    char ids[4][64], type[64];
    struct cli_run run;

    fixture_start(&fixture, 2, NULL);
    fixture_add_session(&fixture, NULL, false, &one);
    cr_assert_eq(session_ids(&fixture, fixture.user.email, ids), 1);
    fixture_add_session(&fixture, NULL, true, &two);
    EXPECT_ROWS(&fixture, 2, "session", "list");
    EXPECT_ROWS(&fixture, 2, "session", "list", "--account", fixture.account);
    cr_assert_eq(session_status(&fixture, 1, &one), 200);

    RUN(&fixture, &run, "session", "end", ids[0]);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_str_eq(run.out, "1 session ended; no node accepts it.\n");
    cli_finish(&run);
    cr_expect_eq(session_status(&fixture, 0, &one), 401);
    cr_expect_eq(session_status(&fixture, 1, &one), 401);
    cr_expect_eq(session_status(&fixture, 1, &two), 200, "the other one goes on");
    RUN(&fixture, &run, "session", "end", ids[0]);
    cli_expect_refusal(&run, 1, "There is no session", "twice");
    RUN(&fixture, &run, "audit", "tail", "-n", "1", "--json");
    cli_member(run.out, "type", type, sizeof type);
    cr_expect_str_eq(type, "session.ended");
    cli_member(run.out, "actor", type, sizeof type);
    cr_expect_str_eq(type, "operator");
    cli_finish(&run);

    fixture_add_session(&fixture, NULL, false, &three);
    RUN(&fixture, &run, "session", "end", "--user", fixture.user.email, "--json");
    cr_expect_str_eq(run.out, "{\"ended\":2}\n", "%s", run.err);
    cli_finish(&run);
    cr_expect_eq(session_status(&fixture, 0, &two), 401);
    cr_expect_eq(session_status(&fixture, 1, &three), 401);
    RUN(&fixture, &run, "session", "end", "--user", fixture.user.email);
    cr_expect_eq(run.exit_code, 0);
    cr_expect_str_eq(run.out, "0 sessions ended; no node accepts them.\n");
    cli_finish(&run);
    RUN(&fixture, &run, "session", "list");
    cr_expect_str_eq(run.err, "No session matches.\n");
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli_lists, a_second_factor_is_reset_only_when_asked_for_twice)
{
    struct fixture fixture;
    struct fixture_session session;
    struct cli_run run;

    fixture_start(&fixture, 1, NULL);
    fixture_add_session(&fixture, NULL, false, &session);
    RUN(&fixture, &run, "user", "reset-totp", "--email", fixture.user.email);
    cli_expect_refusal(&run, 2, "this needs --yes", "no terminal to ask on");
    cr_expect_eq(session_status(&fixture, 0, &session), 200, "nothing was changed");
    RUN(&fixture, &run, "user", "reset-totp", "--email", fixture.user.email, "-y");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    cr_expect_eq(session_status(&fixture, 0, &session), 401);
    fixture_stop(&fixture);
}

Test(cli_lists, secrets_are_verified_without_a_node)
{
    char path[PROCESS_PATH_BYTES], wrong[FIXTURE_TOKEN_BYTES];
    struct fixture fixture;
    struct fixture_key key;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_PATIENTS_READ, &key);
    snprintf(path, sizeof path, "%.150s/key", fixture.folder);
    file_write(path, key.secret);
    cli_run_bare(&fixture, &run, (const char *const[]){"key", "verify", path, NULL});
    cr_expect_str_eq(run.out, "A well-formed API key, for test data. Only a node knows whether it is active.\n");
    cr_expect_eq(run.exit_code, 0);
    cli_finish(&run);
    cli_run_bare(&fixture, &run, (const char *const[]){"key", "verify", path, "--json", NULL});
    cr_expect_str_eq(run.out, "{\"well_formed\":true,\"kind\":\"api_key\",\"mode\":\"test\"}\n");
    cli_finish(&run);

    snprintf(wrong, sizeof wrong, "%s", key.secret);
    wrong[20] = wrong[20] == 'a' ? 'b' : 'a';
    file_write(path, wrong);
    cli_run_bare(&fixture, &run, (const char *const[]){"key", "verify", path, NULL});
    cli_expect_refusal(&run, 1, "The checksum is wrong", "a typing error");
    cli_run_bare(&fixture, &run, (const char *const[]){"key", "verify", path, "--json", NULL});
    cr_expect_str_eq(run.out, "{\"well_formed\":false}\n");
    cr_expect_eq(run.exit_code, 1);
    cli_finish(&run);
    wrong[30] = '\0';
    file_write(path, wrong);
    cli_run_bare(&fixture, &run, (const char *const[]){"key", "verify", path, NULL});
    cli_expect_refusal(&run, 1, "another prefix or length", "cut");
    cli_run_bare(&fixture, &run, (const char *const[]){"key", "verify", key.secret, NULL});
    cr_expect_null(strstr(run.err, key.secret), "not repeated");
    cli_expect_refusal(&run, 2, "This is a key, not the name of a file", "in an argument");
    fixture_stop(&fixture);
}

/* Waits until the file contains the text as many times. */
static void await_count(const char *path, const char *text, size_t times)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    for (;;) {
        char *content = file_read(path);
        size_t found = 0;

        for (const char *at = content; (at = strstr(at, text)); at++)
            found++;
        free(content);
        if (found == times)
            return;
        cr_assert_leq(found, times, "%s", text);
        if (deadline_left_ms(deadline) == 0)
            cr_assert_fail("%s: %zu times, not %zu", text, found, times);
        poll(NULL, 0, 20);
    }
}

Test(cli_lists, the_audit_trail_is_followed_across_a_restart_of_redis)
{
    char other[ID_TEXT_BYTES];
    struct fixture fixture;
    struct fixture_key first, second, third;
    struct process tail;

    fixture_start(&fixture, 0, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &first);
    process_start(&tail, fixture.folder, "tail",
                  (const char *const[]){node_binary(), "audit", "tail", "-f", "-n", "1", "--redis", fixture.redis.url,
                                        "--redis-timeout-ms", "10s", NULL});
    await_count(tail.out_path, "api_key.created", 1);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_PATIENTS_READ, &second);
    await_count(tail.out_path, second.id, 1);

    redis_server_kill(&fixture.redis);
    await_count(tail.err_path, "Redis is away", 1);
    redis_server_restart(&fixture.redis);
    fixture_add_account(&fixture, other);
    fixture_add_key(&fixture, other, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &third);
    fixture_revoke_key(&fixture, &first);
    await_count(tail.out_path, "api_key.revoked", 1);
    await_count(tail.out_path, third.id, 1);
    await_count(tail.err_path, "Redis answers again", 1);
    await_count(tail.out_path, "api_key.created", 3);
    process_signal(&tail, SIGTERM); /* SIGINT is ignored if a script runs these tests in the background */
    cr_expect(process_wait(&tail, PATIENCE_MS));
    fixture_stop(&fixture);
}

Test(cli_lists, the_newest_events_of_all_accounts_come_in_order)
{
    char other[ID_TEXT_BYTES];
    struct fixture fixture;
    struct fixture_key one, two, three;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    fixture_add_account(&fixture, other);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &one);
    fixture_add_key(&fixture, other, KEY_API, MODE_TEST, SCOPE_PATIENTS_READ, &two);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &three);
    RUN(&fixture, &run, "audit", "tail", "-n", "2");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_eq(count_lines(run.out), 2, "%s", run.out);
    cr_expect_null(strstr(run.out, one.id), "%s", run.out);
    cr_assert(strstr(run.out, two.id) && strstr(run.out, three.id), "%s", run.out);
    cr_expect_lt(strstr(run.out, two.id), strstr(run.out, three.id));
    cli_finish(&run);
    RUN(&fixture, &run, "audit", "tail", "-n", "0");
    cr_expect_str_empty(run.out);
    cli_finish(&run);
    RUN(&fixture, &run, "audit", "tail", "--account", other, "--json");
    cr_expect_eq(count_lines(run.out), 1, "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

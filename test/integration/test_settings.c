/* One reading of settings: what 'doctor' and 'config show' say is what 'serve' does, for every setting and every way to
 * give it. */
#include "cli.h"
#include "base/json.h"
#include "config/settings.h"
#include "deadline.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(settings, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static const struct option_table *const TABLES[] = {&SETTINGS_STORE,       &SETTINGS_KEYS,  &SETTINGS_LOG,
                                                    &SETTINGS_NODE,        &SETTINGS_TLS,   &SETTINGS_ORIGIN,
                                                    &SETTINGS_REVOCATIONS, &SETTINGS_AUDIT, &SETTINGS_LIMITS};

/* A value that 'serve' refuses, and what else that takes. */
struct bad_text {
    const char *name, *value;
    const char *needs[2]; /* another option and its value */
};
static const struct bad_text BAD_TEXTS[] = {
    {"settings", "/nonexistent/conf", {0}},
    {"redis", "http://127.0.0.1", {0}},
    {"redis-file", "/nonexistent/redis", {0}},
    {"redis-ca", "/nonexistent/ca", {"CHATELAINE_REDIS", "rediss://127.0.0.1:1"}},
    {"redis-cert", "/nonexistent/cert", {"CHATELAINE_REDIS", "rediss://127.0.0.1:1"}},
    {"redis-key", "/nonexistent/key", {"CHATELAINE_REDIS", "rediss://127.0.0.1:1"}},
    {"sentinel-auth-file", "/nonexistent/auth", {"CHATELAINE_REDIS", "redis-sentinel://127.0.0.1:1/m"}},
    {"prefix", "01234567890123456789012345678901234567890123456789012345678901234", {0}},
    {"master-key-file", "/nonexistent/key", {0}},
    {"retired-master-key-file", "/nonexistent/key", {0}},
    {"listen", "8080", {0}},
    {"internal-listen", "localhost:8081", {0}},
    {"check-socket", "relative.sock", {0}},
    {"policy-file", "/nonexistent", {0}},
    {"trusted-proxies", "10.1.2.3/8", {0}},
    {"device-clients", "a b", {0}},
    {"table", "/nonexistent/table.sock", {0}},
    {"table-deployment",
     "0123456789012345678901234567890123456789012345678901234567890123",
     {"CHATELAINE_TABLE", "/tmp/t"}},
    {"watch-names", "gateway", {0}},
    {"public-origin", "console.example.org", {0}},
    {"tls-cert", "/nonexistent/cert", {0}},
    {"tls-key", "/nonexistent/key", {0}},
    {"internal-tls-cert", "/nonexistent/cert", {0}},
    {"internal-tls-key", "/nonexistent/key", {0}},
    {"internal-client-ca", "/nonexistent/ca", {0}},
    {"revocation-log", "/nonexistent/a", {0}},
    {"audit-log", "/nonexistent/a", {0}},
};
/* Any text will do: names that clients may use, and a file that is written only once the node serves. */
static const char *const ANY_TEXT[] = {"internal-hosts", "ready-file"};

static const struct bad_text *find_bad_text(const char *name)
{
    for (size_t i = 0; i < sizeof BAD_TEXTS / sizeof *BAD_TEXTS; i++)
        if (strcmp(BAD_TEXTS[i].name, name) == 0)
            return &BAD_TEXTS[i];
    for (size_t i = 0; i < sizeof ANY_TEXT / sizeof *ANY_TEXT; i++)
        if (strcmp(ANY_TEXT[i], name) == 0)
            return NULL;
    cr_assert_fail("--%s: add a value that 'serve' refuses", name);
    return NULL;
}

/* Runs it with settings that are right but for Redis, which is away. */
static void run_alone(const struct fixture *fixture, const char *command, struct cli_run *ret_run)
{
    cli_run_bare(fixture, ret_run,
                 (const char *const[]){command, strcmp(command, "doctor") == 0 ? "--json" : NULL, NULL});
}

/* "chatelaine: Sentence.\n…" without the first word's capital and the full stop. */
static void take_sentence(const struct cli_run *run, char *ret_sentence, size_t size)
{
    const char *from = strstr(run->err, "chatelaine: ");
    size_t length = from ? strcspn(from + strlen("chatelaine: ") + 1, "\n\"") : 0;

    cr_assert(from, "no sentence: %s", run->err);
    if (length > 60)
        length = 60;
    snprintf(ret_sentence, size, "%.*s", (int)length, from + strlen("chatelaine: ") + 1);
    if (length > 0 && ret_sentence[length - 1] == '.')
        ret_sentence[length - 1] = '\0';
}

/* Both refuse, and name the same mistake. */
static void expect_both_refuse(const struct fixture *fixture, const char *what)
{
    struct cli_run serve, doctor;
    char sentence[128];

    run_alone(fixture, "serve", &serve);
    /* 1: it is tried again, because a folder may come late. */
    cr_expect(serve.exit_code == 2 || (serve.exit_code == 1 && strstr(serve.err, "no such file")),
              "serve with %s: %d: %s", what, serve.exit_code, serve.err);
    take_sentence(&serve, sentence, sizeof sentence);
    run_alone(fixture, "doctor", &doctor);
    cr_expect(doctor.exit_code == 2 || doctor.exit_code == 3, "doctor with %s: %d", what, doctor.exit_code);
    cr_expect(strstr(doctor.out, sentence) || strstr(doctor.err, sentence), "doctor with %s lacks \"%s\": %s%s", what,
              sentence, doctor.out, doctor.err);
    cli_finish(&serve);
    cli_finish(&doctor);
}

static void set_right(const struct fixture *fixture)
{
    char path[PROCESS_PATH_BYTES];

    snprintf(path, sizeof path, "%.150s/master.key", fixture->folder);
    file_write(path, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n");
    setenv("CHATELAINE_MASTER_KEY_FILE", path, 1);
    setenv("CHATELAINE_PUBLIC_ORIGIN", NODE_ORIGIN, 1);
    setenv("CHATELAINE_REDIS", "unix:/nonexistent/redis.sock", 1);
    setenv("CHATELAINE_REDIS_TIMEOUT_MS", "100ms", 1);
    setenv("CHATELAINE_LISTEN", "127.0.0.1:0", 1);
    setenv("CHATELAINE_INTERNAL_LISTEN", "127.0.0.1:0", 1);
    unsetenv("CHATELAINE_PARTITIONS");
    unsetenv("CHATELAINE_UNSAFE_REDIS");
}

/* With a value that the row refuses. False: it takes any. */
static bool set_wrong(const struct option_row *row, const char *variable)
{
    const struct bad_text *bad = row->type == OPTION_TEXT ? find_bad_text(row->name) : NULL;

    if (row->type != OPTION_TEXT)
        setenv(variable, "\"1s\"", 1);
    else if (!bad)
        return false;
    else
        setenv(variable, bad->value, 1);
    if (bad && bad->needs[0])
        setenv(bad->needs[0], bad->needs[1], 1);
    if (row->instead_of)
        unsetenv("CHATELAINE_REDIS");
    return true;
}

Test(settings, doctor_refuses_whatever_serve_refuses)
{
    struct fixture fixture = {0};
    size_t tried = 0;

    folder_make(fixture.folder);
    for (size_t t = 0; t < sizeof TABLES / sizeof *TABLES; t++) {
        for (size_t i = 0; i < TABLES[t]->count; i++) {
            char variable[64];
            struct buf out;

            buf_init_fixed(&out, variable, sizeof variable);
            options_print_variable(&TABLES[t]->rows[i], &out);
            buf_append_char(&out, '\0');
            set_right(&fixture);
            if (set_wrong(&TABLES[t]->rows[i], variable)) {
                expect_both_refuse(&fixture, variable);
                tried++;
            }
            unsetenv(variable);
            unsetenv("CHATELAINE_TABLE");
        }
    }
    cr_expect_gt(tried, 70);
    folder_remove(fixture.folder);
}

/* Of values that have the right form, and do not go together. */
Test(settings, doctor_refuses_what_does_not_go_together)
{
    static const char *const CASES[][4] = {
        {"CHATELAINE_LEASE_MS", "0", "CHATELAINE_TABLE", "/tmp/t"},
        {"CHATELAINE_PROXY_PROTOCOL", "true", "", ""},
        {"CHATELAINE_INTERNAL_PROXY_PROTOCOL", "true", "", ""},
        {"CHATELAINE_CANARY_INTERVAL_MS", "500ms", "", ""},
        {"CHATELAINE_PARTITIONS", "3", "", ""},
        {"CHATELAINE_REDIS", "redis-sentinel://127.0.0.1:1/m", "CHATELAINE_LEASE_MS", "0"},
        {"CHATELAINE_REDIS_CERT", "/tmp/x", "", ""},
        {"CHATELAINE_REDIS_FILE", "/tmp/x", "", ""},
        {"CHATELAINE_TLS_CERT", "/tmp/x,", "CHATELAINE_TLS_KEY", "/tmp/x"},
        {"CHATELAINE_AUDIT_LOG", "/tmp", "", ""},
        {"CHATELAINE_CHECK_SOCKET", "/nonexistent/check.sock", "", ""},
        {"CHATELAINE_LISTEN", "unix:/nonexistent/public.sock", "", ""},
        {"CHATELAINE_LISTEN", "unix:/etc/passwd", "", ""},
        {"CHATELAINE_INTERNAL_LISTEN", "unix:/etc/passwd", "", ""},
        {"CHATELAINE_CHECK_SOCKET", "/etc/passwd", "", ""},
        {"CHATELAINE_TABLE", "/etc/passwd", "", ""},
    };
    struct fixture fixture = {0};

    folder_make(fixture.folder);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        set_right(&fixture);
        setenv(CASES[i][0], CASES[i][1], 1);
        if (CASES[i][2][0])
            setenv(CASES[i][2], CASES[i][3], 1);
        expect_both_refuse(&fixture, CASES[i][0]);
        unsetenv(CASES[i][0]);
        if (CASES[i][2][0])
            unsetenv(CASES[i][2]);
    }
    folder_remove(fixture.folder);
}

static void expect_refused_by_both(const struct fixture *fixture, const char *says)
{
    static const char *const COMMANDS[] = {"serve", "doctor"};
    struct cli_run run;

    for (size_t i = 0; i < 2; i++) {
        run_alone(fixture, COMMANDS[i], &run);
        cr_expect_eq(run.exit_code, i == 0 ? 2 : 3, "%s: %d", COMMANDS[i], run.exit_code);
        cr_expect(strstr(run.err, says) || strstr(run.out, says), "%s lacks \"%s\": %s%s", COMMANDS[i], says, run.err,
                  run.out);
        cli_finish(&run);
    }
}

/* A service manager must not start it again and again: only a person can help. */
Test(settings, a_port_that_needs_a_capability_is_refused)
{
    struct fixture fixture = {0};
    char *first = file_read("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    bool is_free = strtol(first, NULL, 10) <= 443;

    free(first);
    if (is_free)
        cr_skip_test("here every user may take every port");
    folder_make(fixture.folder);
    set_right(&fixture);
    if (geteuid() == 0)
        cr_assert_eq(prctl(PR_CAPBSET_DROP, CAP_NET_BIND_SERVICE, 0, 0, 0), 0);
    setenv("CHATELAINE_LISTEN", "0.0.0.0:443", 1);
    expect_refused_by_both(&fixture,
                           "listen on --listen 0.0.0.0:443: ports below 1024 need CAP_NET_BIND_SERVICE: grant");
    setenv("CHATELAINE_LISTEN", "127.0.0.1:0", 1);
    setenv("CHATELAINE_INTERNAL_LISTEN", "[::1]:443", 1);
    expect_refused_by_both(&fixture,
                           "listen on --internal-listen [::1]:443: ports below 1024 need CAP_NET_BIND_SERVICE");
    machine_lose_ipv6();
    setenv("CHATELAINE_INTERNAL_LISTEN", "[::]:443", 1);
    expect_refused_by_both(&fixture,
                           "listen on --internal-listen [::]:443: ports below 1024 need CAP_NET_BIND_SERVICE");
    folder_remove(fixture.folder);
}

Test(settings, what_is_at_a_sockets_path_is_named)
{
    struct fixture fixture = {0};

    folder_make(fixture.folder);
    set_right(&fixture);
    setenv("CHATELAINE_CHECK_SOCKET", "/etc/passwd", 1);
    expect_refused_by_both(&fixture,
                           "listen on --check-socket /etc/passwd: the file there is not a socket; move it away");
    folder_remove(fixture.folder);
}

/* As for a unit with ProtectSystem=strict. */
Test(settings, a_log_where_the_unit_may_not_write_is_explained)
{
    static const char *const SETTINGS[] = {"CHATELAINE_AUDIT_LOG", "CHATELAINE_REVOCATION_LOG"};
    char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES];
    struct fixture fixture = {0};

    if (unshare(CLONE_NEWNS) != 0)
        cr_skip_test("only root may mount");
    folder_make(fixture.folder);
    snprintf(folder, sizeof folder, "%.150s/fixed", fixture.folder);
    snprintf(path, sizeof path, "%.160s/log", folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
    cr_assert_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    cr_assert_eq(mount("none", folder, "tmpfs", MS_RDONLY, NULL), 0);
    for (size_t i = 0; i < 2; i++) {
        set_right(&fixture);
        setenv(SETTINGS[i], path, 1);
        expect_refused_by_both(&fixture, "ead-only file system. systemd lets a service write only in its own folders");
        unsetenv(SETTINGS[i]);
    }
    cr_assert_eq(umount(folder), 0);
    folder_remove(fixture.folder);
}

/* Whoever starts a node for the first time learns at once what is missing. */
Test(settings, both_tell_all_mistakes_at_once)
{
    static const char *const SAID[] = {
        "CHATELAINE_LEASE_MS must be from",
        "CHATELAINE_LOG_LEVEL must be debug",
        "--trusted-proxies: \"10.1.2.3/8\" is neither",
        "--policy-file /nonexistent: cannot open",
        "annot open the audit log /nonexistent/a",
        "listen on --listen localhost:8080: it must be an address, not a name, as in 127.0.0.1:8080"};
    struct fixture fixture = {0};
    struct cli_run run;

    folder_make(fixture.folder);
    set_right(&fixture);
    setenv("CHATELAINE_LEASE_MS", "\"1s\"", 1);
    setenv("CHATELAINE_LOG_LEVEL", "warning", 1);
    setenv("CHATELAINE_TRUSTED_PROXIES", "10.1.2.3/8", 1);
    setenv("CHATELAINE_POLICY_FILE", "/nonexistent", 1);
    setenv("CHATELAINE_AUDIT_LOG", "/nonexistent/a", 1);
    setenv("CHATELAINE_LISTEN", "localhost:8080", 1);
    for (int round = 0; round < 4; round++) {
        const char *command = round % 2 ? "doctor" : "serve";

        run_alone(&fixture, command, &run);
        cr_expect(run.exit_code == 2 || run.exit_code == 3, "%s: %d", command, run.exit_code);
        for (size_t i = round < 2 ? 0 : 2; i < sizeof SAID / sizeof *SAID; i++)
            cr_expect(strstr(run.err, SAID[i]) || strstr(run.out, SAID[i]) || (round == 3 && i == 2),
                      "%s lacks \"%s\": %s%s", command, SAID[i], run.err, run.out);
        cli_finish(&run);
        if (round == 1) {
            unsetenv("CHATELAINE_LEASE_MS");
            unsetenv("CHATELAINE_LOG_LEVEL");
        }
    }
    folder_remove(fixture.folder);
}

static void write_conf(const struct fixture *fixture, const char *name, const char *text,
                       char ret_path[PROCESS_PATH_BYTES])
{
    snprintf(ret_path, PROCESS_PATH_BYTES, "%.150s/%s", fixture->folder, name);
    file_write(ret_path, text);
}

static void expect_shown(const struct cli_run *run, const char *name, const char *value, const char *source)
{
    char line[512];

    snprintf(line, sizeof line, "\n  %-24s %-32s  %s\n", name, value, source);
    cr_expect(strstr(run->out, line), "lacks%s: %s", line, run->out);
}

/* The file that nodes start with is read by the same reader for every command. */
Test(settings, a_settings_file_stands_between_environment_and_options)
{
    char first[PROCESS_PATH_BYTES], second[PROCESS_PATH_BYTES], both[2 * PROCESS_PATH_BYTES],
        source[PROCESS_PATH_BYTES + 8];
    struct fixture fixture = {0};
    struct cli_run run;

    folder_make(fixture.folder);
    write_conf(&fixture, "first",
               "\xef\xbb\xbf# ours\r\nCHATELAINE_LEASE_MS=2s\r\nCHATELAINE_AUDIT_LOG=\r\n"
               "CHATELAINE_PREFIX='a b:'\r\n",
               first);
    write_conf(&fixture, "second", "CHATELAINE_LEASE_MS=3s\nCHATELAINE_KEYS_MAX=7\n", second);
    snprintf(both, sizeof both, "%s,%s", first, second);
    setenv("CHATELAINE_AUDIT_LOG", "/var/log/of/the/unit", 1);
    setenv("CHATELAINE_KEYS_MAX", "5", 1);
    setenv("CHATELAINE_PEOPLE_MAX", "6", 1);
    cli_run_bare(&fixture, &run,
                 (const char *const[]){"config", "show", "--settings", both, "--keys-per-day", "9", NULL});
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    snprintf(source, sizeof source, "%s:1", second);
    expect_shown(&run, "lease-ms", "3s", source);
    snprintf(source, sizeof source, "%s:4", first);
    expect_shown(&run, "prefix", "a b:", source);
    expect_shown(&run, "audit-log", "-", "default");
    snprintf(source, sizeof source, "%s:2", second);
    expect_shown(&run, "keys-max", "7", source);
    expect_shown(&run, "people-max", "6", "CHATELAINE_PEOPLE_MAX");
    expect_shown(&run, "keys-per-day", "9", "--keys-per-day");
    cli_finish(&run);

    setenv("CHATELAINE_SETTINGS", first, 1);
    cli_run_bare(&fixture, &run, (const char *const[]){"config", "show", NULL});
    snprintf(source, sizeof source, "%s:2", first);
    expect_shown(&run, "lease-ms", "2s", source);
    cli_finish(&run);
    cli_run_bare(&fixture, &run,
                 (const char *const[]){"config", "show", "--settings", second, "--lease-ms", "4s", NULL});
    expect_shown(&run, "lease-ms", "4s", "--lease-ms");
    expect_shown(&run, "prefix", "chatelaine:", "default");
    cli_finish(&run);
    folder_remove(fixture.folder);
}

/* Commands without an option of that name read the file all the same, as 'ready' must. */
Test(settings, every_command_refuses_a_file_that_is_not_clear)
{
    static const char *const COMMANDS[][3] = {
        {"serve", NULL, NULL}, {"doctor", NULL, NULL},    {"config", "show", NULL},  {"status", NULL, NULL},
        {"ready", NULL, NULL}, {"account", "list", NULL}, {"key", "verify", "/none"}};
    char path[PROCESS_PATH_BYTES], says[PROCESS_PATH_BYTES + 64];
    struct fixture fixture = {0};
    struct cli_run run;

    folder_make(fixture.folder);
    write_conf(&fixture, "conf", "CHATELAINE_PUBLIC_ORIGIN=https://console.test\nexport CHATELAINE_LEASE_MS=hidden\n",
               path);
    setenv("CHATELAINE_SETTINGS", path, 1);
    snprintf(says, sizeof says, "chatelaine: %s:2: write NAME=value, without export.", path);
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        cli_run_bare(&fixture, &run, (const char *const[]){COMMANDS[i][0], COMMANDS[i][1], COMMANDS[i][2], NULL});
        cr_expect_null(strstr(run.err, "hidden"), "%s", run.err);
        cli_expect_refusal(&run, 2, says, COMMANDS[i][0]);
    }
    folder_remove(fixture.folder);
}

#define MISSPELLED "CHATELAINE_REVOCATION_LGO"
#define MEANT "CHATELAINE_REVOCATION_LOG"
#define SENTENCE MISSPELLED " is no setting and has no effect; did you mean " MEANT "?"

static bool status_says(struct fixture *fixture, const char *says)
{
    struct cli_run run;

    RUN(fixture, &run, "status");
    bool is_said = run.exit_code == 3 && strstr(run.out, says);
    cli_finish(&run);
    return is_said;
}

Test(settings, a_misspelled_one_is_told_in_four_places_without_its_value)
{
    struct deadline deadline;
    struct fixture fixture;
    struct cli_run run;
    char *log;

    setenv(MISSPELLED, "/var/log/hidden", 1);
    setenv("CHATELAINE_PORT", "tcp://10.0.0.1:8080", 1); /* of a Service in Kubernetes */
    fixture_start(&fixture, 1, NULL);
    log = node_log(&fixture.nodes[0]);
    cr_expect(strstr(log, "level=warn message=\"unknown setting: it has no effect\" name=" MISSPELLED " meant=" MEANT
                          " where=environment"),
              "%s", log);
    cr_expect_null(strstr(log, "hidden"), "%s", log);
    cr_expect_null(strstr(log, "name=CHATELAINE_PORT"), "%s", log);
    free(log);
    deadline = deadline_in(PATIENCE_MS);
    while (!status_says(&fixture, SENTENCE))
        cr_assert_gt(deadline_left_ms(deadline), 0, "status does not say it");
    RUN(&fixture, &run, "doctor", "--public-origin", NODE_ORIGIN, "--json");
    cr_expect_eq(run.exit_code, 3);
    cr_expect(strstr(run.out, "\"status\":\"fail\",\"detail\":\"" SENTENCE), "%s", run.out);
    cr_expect_null(strstr(run.out, "hidden"), "%s", run.out);
    cli_finish(&run);
    RUN(&fixture, &run, "config", "show");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "\nWithout effect:\n  " SENTENCE "\n"), "%s", run.out);
    cr_expect_null(strstr(run.out, "hidden"), "%s", run.out);
    cli_finish(&run);
    RUN(&fixture, &run, "config", "show", "--json");
    cr_expect(strstr(run.out,
                     "\"unknown\":[{\"name\":\"" MISSPELLED "\",\"meant\":\"" MEANT "\",\"source\":\"environment\"}]"),
              "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

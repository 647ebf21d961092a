/* One reading of settings: what 'doctor' and 'config show' say is what 'serve' does, for every setting and every way to
 * give it. */
#include "cli.h"
#include "base/json.h"
#include "deadline.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(settings, .fini = leak_guard, .timeout = TEST_WITHIN_S);

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

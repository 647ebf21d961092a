/* A misspelled setting is no setting. */
#include "app/unknown_settings.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(unknown_settings, .fini = leak_guard);

static struct unknown_settings unknown;
static const struct option_assignments NONE;

static void expect_only(const char *name, const char *meant, const char *where)
{
    cr_assert_eq(unknown.count, 1, "%s: %zu, %s", name, unknown.count, unknown.of[0].name);
    cr_expect_str_eq(unknown.of[0].name, name);
    cr_expect_str_eq(unknown.of[0].meant, meant);
    cr_expect(where ? strcmp(unknown.of[0].where, where) == 0 : !unknown.of[0].where);
}

Test(unknown_settings, of_the_environment)
{
    clearenv();
    setenv("CHATELAINE_REVOCATION_LGO", "/var/log/secret", 1);
    unknown_settings_find(&NONE, &unknown);
    expect_only("CHATELAINE_REVOCATION_LGO", "CHATELAINE_REVOCATION_LOG", NULL);
    clearenv();
    setenv("CHATELAINE_LEASE_MSS", "500ms", 1);
    unknown_settings_find(&NONE, &unknown);
    expect_only("CHATELAINE_LEASE_MSS", "CHATELAINE_LEASE_MS", NULL);
    clearenv();
    setenv("CHATELAINE_QUITE_ANOTHER_THING", "", 1);
    unknown_settings_find(&NONE, &unknown);
    expect_only("CHATELAINE_QUITE_ANOTHER_THING", "", NULL);
    clearenv();
    setenv("CHATELAINE_lease_ms", "1s", 1);
    unknown_settings_find(&NONE, &unknown);
    expect_only("CHATELAINE_lease_ms", "CHATELAINE_LEASE_MS", NULL);
    clearenv();
    setenv("CHATELAINE_LISTEN_PORT", "8080", 1);
    unknown_settings_find(&NONE, &unknown);
    cr_expect_eq(unknown.count, 1, "a number is no Service's address");
}

/* Those of every command, and what others set. */
Test(unknown_settings, known_names_and_those_of_others)
{
    static const char *const VARIABLES[][2] = {
        {"CHATELAINE_LEASE_MS", "1s"},
        {"CHATELAINE_SETTINGS", "/etc/chatelaine/chatelaine.conf"},
        {"CHATELAINE_SECRET_FILE", "of key find"},
        {"CHATELAINE_DIR", "of dev"},
        {"CHATELAIN_LEASE_MSS", "not ours"},
        {"CHATELAINE", "1"},
        {"CHATELAINE_PORT", "tcp://10.0.0.7:8080"},
        {"CHATELAINE_SERVICE_HOST", "10.0.0.7"},
        {"CHATELAINE_SERVICE_PORT", "8080"},
        {"CHATELAINE_SERVICE_PORT_HTTPS", "8080"},
        {"CHATELAINE_PORT_8080_TCP", "tcp://10.0.0.7:8080"},
        {"CHATELAINE_PORT_8080_TCP_ADDR", "10.0.0.7"},
        {"CHATELAINE_INTERNAL_PORT", "udp://10.0.0.7:8081"},
        {"CHATELAINE_INTERNAL_PORT_8081_UDP_PROTO", "udp"},
        {"CHATELAINE_INTERNAL_SERVICE_HOST", "10.0.0.7"},
        {"CHATELAINE_TEST_CLUSTER", "3"},
        {"CHATELAINE_BINARY", "build/asan/chatelaine"},
        {"CHATELAINE_JOBS", "2"},
    };

    clearenv();
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++)
        setenv(VARIABLES[i][0], VARIABLES[i][1], 1);
    unknown_settings_find(&NONE, &unknown);
    cr_expect_eq(unknown.count, 0, "%s", unknown.of[0].name);
}

Test(unknown_settings, of_files_and_no_more_than_there_is_room_for)
{
    struct option_assignment rows[UNKNOWN_SETTINGS_MAX + 2] = {{"CHATELAINE_LEASE_MS", "1s", "a:1"},
                                                               {"CHATELAINE_SERVICE_HOST", "h", "a:2"}};
    char long_name[200];

    clearenv();
    unknown_settings_find(&(struct option_assignments){rows, 2}, &unknown);
    expect_only("CHATELAINE_SERVICE_HOST", "", "a:2");
    memset(long_name, 'X', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    memcpy(long_name, "CHATELAINE_", 11);
    for (size_t i = 0; i < UNKNOWN_SETTINGS_MAX + 2; i++)
        rows[i] = (struct option_assignment){long_name, "", "a:3"};
    unknown_settings_find(&(struct option_assignments){rows, UNKNOWN_SETTINGS_MAX + 2}, &unknown);
    cr_expect_eq(unknown.count, UNKNOWN_SETTINGS_MAX);
    cr_expect_eq(strlen(unknown.of[0].name), sizeof unknown.of[0].name - 1);
}

#include "config/settings.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TestSuite(settings, .fini = leak_guard);

static const struct option_table *const TABLES[] = {&SETTINGS_STORE,      &SETTINGS_KEYS,   &SETTINGS_LOG,
                                                    &SETTINGS_NODE,       &SETTINGS_ORIGIN, &SETTINGS_LIMITS,
                                                    &SETTINGS_REVOCATIONS};

static bool read_all(struct settings *settings, int argc, char **argv, struct buf *why)
{
    struct option_table tables[COUNT(TABLES)];
    int rest;

    for (size_t i = 0; i < COUNT(TABLES); i++)
        tables[i] = *TABLES[i];
    return options_read(tables, COUNT(TABLES), settings, argc, argv, &rest, why);
}

Test(settings, defaults_are_those_of_the_contract)
{
    char storage[512];
    struct buf why;
    struct settings s;

    buf_init_fixed(&why, storage, sizeof storage);
    cr_assert(read_all(&s, 0, NULL, &why), "%.*s", TEXT_ARG(buf_text(&why)));
    cr_assert_str_eq(s.listen, "127.0.0.1:8080");
    cr_assert_str_eq(s.internal_listen, "127.0.0.1:8081");
    cr_assert_str_eq(s.redis, "redis://127.0.0.1:6379");
    cr_assert_str_eq(s.prefix, "chatelaine:");
    cr_assert_null(s.public_origin);
    cr_assert_null(s.master_key_file);
    cr_assert_null(s.policy_file);
    cr_assert_null(s.revocation_log);
    cr_assert_not(s.unsafe_redis);
    cr_assert_not(s.reuse_port);
    cr_assert_eq(s.grant_policy, GRANT_SUBSET);
    cr_assert_eq(s.log_level, LOG_INFO);
    cr_assert_eq(s.log_format, LOG_LOGFMT);
    cr_assert_eq(s.redis_timeout_ms, 1000);
    cr_assert_eq(s.min_replicas, 0);
    cr_assert_eq(s.audit_max, 100000);
    cr_assert_eq(s.keys_max, 10000);
    cr_assert_eq(s.device_keys_max, 10000);
    cr_assert_eq(s.people_max, 100000);
    cr_assert_eq(s.changes_per_minute, 600);
    cr_assert_eq(s.reads_per_second, 100);
    cr_assert_eq(s.work_per_account, 4);
    cr_assert_eq(s.session_idle_ms, 30 * 60 * 1000);
    cr_assert_eq(s.session_absolute_ms, 12 * 60 * 60 * 1000);
    cr_assert_eq(s.step_up_ms, 5 * 60 * 1000);
    cr_assert_eq(s.usage_flush_ms, 1000);
    cr_assert_eq(s.canary_interval_ms, 60000);
    cr_assert_eq(s.password_parallel, 2);
    cr_assert_eq(s.password_queue, 32);
    cr_assert_eq(s.drain_ms, 30000);
    cr_assert_eq(s.limits.head_max_bytes, 16 * 1024);
    cr_assert_eq(s.limits.fields_max, 100);
    cr_assert_eq(s.limits.target_max_bytes, 8000);
    cr_assert_eq(s.limits.body_max_bytes, 64 * 1024);
    cr_assert_eq(s.limits.head_timeout_ms, 10000);
    cr_assert_eq(s.limits.body_timeout_ms, 10000);
    cr_assert_eq(s.limits.body_total_timeout_ms, 30000);
    cr_assert_eq(s.limits.body_min_bytes_per_s, 200);
    cr_assert_eq(s.limits.write_min_bytes_per_s, 1000);
    cr_assert_eq(s.limits.idle_timeout_ms, 75000);
}

Test(settings, every_row_is_whole_and_named_once)
{
    const char *names[128];
    size_t count = 0;

    for (size_t t = 0; t < COUNT(TABLES); t++) {
        for (size_t i = 0; i < TABLES[t]->count; i++) {
            const struct option_row *row = &TABLES[t]->rows[i];

            for (size_t n = 0; n < count; n++)
                cr_assert_str_neq(names[n], row->name);
            cr_assert_lt(count, COUNT(names));
            names[count++] = row->name;
            cr_assert_eq(row->help[strlen(row->help) - 1], '.', "--%s", row->name);
            cr_assert_eq(row->type == OPTION_CHOICE, row->choices != NULL, "--%s", row->name);
            cr_assert(row->type != OPTION_INTEGER || (row->default_text && row->min < row->max), "--%s", row->name);
            cr_assert(row->type != OPTION_TEXT || row->value_name, "--%s", row->name);
        }
    }
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name);

    return length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

/* So that each accepts 1s or 96MiB, and is printed so. */
Test(settings, names_tell_times_and_sizes)
{
    for (size_t t = 0; t < COUNT(TABLES); t++) {
        for (size_t i = 0; i < TABLES[t]->count; i++) {
            const struct option_row *row = &TABLES[t]->rows[i];

            cr_expect_eq(row->type == OPTION_TIME, ends_with(row->name, "-ms"), "--%s", row->name);
            cr_expect_eq(row->type == OPTION_SIZE, ends_with(row->name, "-bytes"), "--%s", row->name);
            cr_expect((row->type != OPTION_TIME && row->type != OPTION_SIZE) ||
                          (row->default_text && row->min >= 0 && row->min < row->max),
                      "--%s", row->name);
        }
    }
}

Test(settings, arguments_win_over_the_environment)
{
    char storage[512], option[] = "--min-replicas=2";
    char *argv[] = {option};
    struct buf why;
    struct settings s;

    setenv("CHATELAINE_MIN_REPLICAS", "1", 1);
    setenv("CHATELAINE_GRANT_POLICY", "any", 1);
    buf_init_fixed(&why, storage, sizeof storage);
    cr_assert(read_all(&s, 1, argv, &why));
    cr_assert_eq(s.min_replicas, 2);
    cr_assert_eq(s.grant_policy, GRANT_ANY);
}

Test(settings, the_prefix_is_bounded)
{
    char storage[512], option[] = "--prefix=01234567890123456789012345678901234567890123456789012345678901234";
    char *argv[] = {option};
    struct buf why;
    struct settings s;

    buf_init_fixed(&why, storage, sizeof storage);
    cr_assert_not(read_all(&s, 1, argv, &why));
    cr_expect(text_equal(buf_text(&why), TEXT("--prefix must have at most 64 bytes, not 65.")), "%.*s",
              TEXT_ARG(buf_text(&why)));
    option[strlen(option) - 1] = '\0';
    buf_clear(&why);
    cr_assert(read_all(&s, 1, argv, &why), "%.*s", TEXT_ARG(buf_text(&why)));
    cr_expect_eq(strlen(s.prefix), 64);
}

Test(settings, an_origin_is_scheme_host_and_port)
{
    static const struct {
        const char *origin;
        bool is_fit, is_https;
    } CASES[] = {
        {"https://console.example.org", true, true},
        {"https://console.example.org:8443", true, true},
        {"http://127.0.0.1:8080", true, false},
        {"http://localhost", true, false},
        {"http://localhost:443", true, false},
        {"https://[2001:db8::1]", true, true},
        {"http://[::1]:8080", true, false},
        {"https://console.example.org/", false, true},
        {"https://console.example.org/console", false, true},
        {"https://console.example.org:443", false, true},
        {"http://localhost:80", false, false},
        {"https://Console.example.org", false, true},
        {"HTTPS://console.example.org", false, false},
        {"https://", false, true},
        {"https://:8443", false, true},
        {"https://a:", false, true},
        {"https://a:0", false, true},
        {"https://a:08443", false, true},
        {"https://a:65536", false, true},
        {"https://a:8443x", false, true},
        {"https://user@a", false, true},
        {"https://a b", false, true},
        {"https://[::1", false, true},
        {"https://[]", false, true},
        {"https://[::1]x", false, true},
        {"ftp://a", false, false},
        {"console.example.org", false, false},
        {"", false, false},
        {"null", false, false},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        char storage[512];
        struct buf why;

        buf_init_fixed(&why, storage, sizeof storage);
        cr_expect_eq(settings_validate_origin(CASES[i].origin, &why), CASES[i].is_fit, "%s", CASES[i].origin);
        cr_expect_eq(why.len == 0, CASES[i].is_fit, "%s", CASES[i].origin);
        cr_expect_eq(settings_origin_is_https(CASES[i].origin), CASES[i].is_https, "%s", CASES[i].origin);
    }
}

#include "leak_guard.h"
#include "redis/resolver.h"
#include <criterion/criterion.h>
#include <string.h>

#define A32 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

TestSuite(redis_target, .fini = leak_guard);

static struct redis_target parse(const char *url)
{
    struct redis_target target;
    struct buf why;

    buf_init(&why, 1024);
    cr_assert(redis_target_parse(text_of(url), &target, &why), "%s: %.*s", url, TEXT_ARG(buf_text(&why)));
    buf_finish(&why);
    return target;
}

Test(redis_target, reads_what_is_right)
{
    static const struct {
        const char *url;
        struct redis_target target;
    } CASES[] = {
        {"redis://localhost", {.host = "localhost", .port = 6379}},
        {"redis://10.0.0.1:6380", {.host = "10.0.0.1", .port = 6380}},
        {"redis://host:1/", {.host = "host", .port = 1}},
        {"redis://host/15", {.host = "host", .port = 6379, .db = 15}},
        {"redis://[::1]:65535/2", {.host = "::1", .port = 65535, .db = 2}},
        {"redis://[fe80::1]", {.host = "fe80::1", .port = 6379}},
        {"redis://:secret@host", {.host = "host", .port = 6379, .login.password = "secret"}},
        {"redis://app:p%40s:s%2F@h:7/3", {.host = "h", .port = 7, .db = 3, .login = {"app", "p@s:s/", 0}}},
        {"rediss://host:6380/1", {.host = "host", .port = 6380, .db = 1, .tls = true}},
        {"redis://app:a@b@host", {.host = "host", .port = 6379, .login = {"app", "a@b", 0}}},
        {"unix:/run/redis.sock", {.is_unix = true, .host = "/run/redis.sock"}},
        {"unix:///run/redis.sock?db=4", {.is_unix = true, .host = "/run/redis.sock", .db = 4}},
        {"unix:/a%20b?user=u&password=p%26q", {.is_unix = true, .host = "/a b", .login = {"u", "p&q", 0}}},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct redis_target *wanted = &CASES[i].target;
        const struct redis_target got = parse(CASES[i].url);

        cr_assert_eq(got.is_unix, wanted->is_unix, "%s", CASES[i].url);
        cr_assert_str_eq(got.host, wanted->host, "%s", CASES[i].url);
        cr_assert_eq(got.port, wanted->port, "%s", CASES[i].url);
        cr_assert_eq(got.db, wanted->db, "%s", CASES[i].url);
        cr_assert_eq(got.tls, wanted->tls, "%s", CASES[i].url);
        cr_assert_str_eq(got.login.user, wanted->login.user, "%s", CASES[i].url);
        cr_assert_str_eq(got.login.password, wanted->login.password, "%s", CASES[i].url);
    }
}

Test(redis_target, reads_sentinels)
{
    static const struct {
        const char *url;
        struct redis_target target;
    } CASES[] = {
        {"redis-sentinel://a/keys", {.seed_count = 1, .seeds = {{"a", 26379}}, .master_name = "keys"}},
        {"rediss-sentinel://a/keys", {.seed_count = 1, .seeds = {{"a", 26379}}, .master_name = "keys", .tls = true}},
        {"redis-sentinel://a:1,[::1]:2,10.0.0.3/my-master_1.2/7",
         {.seed_count = 3,
          .seeds = {{"a", 1}, {"::1", 2}, {"10.0.0.3", 26379}},
          .master_name = "my-master_1.2",
          .db = 7}},
        {"redis-sentinel://app:p%40,s@a,b:3/keys/",
         {.seed_count = 2, .seeds = {{"a", 26379}, {"b", 3}}, .master_name = "keys", .login = {"app", "p@,s", 0}}},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct redis_target *wanted = &CASES[i].target;
        const struct redis_target got = parse(CASES[i].url);

        cr_assert_str_eq(got.master_name, wanted->master_name, "%s", CASES[i].url);
        cr_assert_eq(got.seed_count, wanted->seed_count, "%s", CASES[i].url);
        for (unsigned s = 0; s < got.seed_count; s++) {
            cr_assert_str_eq(got.seeds[s].host, wanted->seeds[s].host, "%s", CASES[i].url);
            cr_assert_eq(got.seeds[s].port, wanted->seeds[s].port, "%s", CASES[i].url);
        }
        cr_assert_eq(got.db, wanted->db, "%s", CASES[i].url);
        cr_assert_eq(got.tls, wanted->tls, "%s", CASES[i].url);
        cr_assert_str_eq(got.login.user, wanted->login.user, "%s", CASES[i].url);
        cr_assert_str_eq(got.login.password, wanted->login.password, "%s", CASES[i].url);
        cr_assert_eq(got.found, REDIS_BY_SENTINEL, "%s", CASES[i].url);
        cr_assert(got.host[0] == '\0' && got.port == 0 && !got.is_unix, "%s", CASES[i].url);
    }
}

Test(redis_target, reads_the_seeds_of_a_cluster)
{
    static const struct {
        const char *url;
        struct redis_target target;
    } CASES[] = {
        {"redis-cluster://a", {.seed_count = 1, .seeds = {{"a", 6379}}}},
        {"rediss-cluster://a/", {.seed_count = 1, .seeds = {{"a", 6379}}, .tls = true}},
        {"redis-cluster://a:1,[::1]:2,10.0.0.3/0",
         {.seed_count = 3, .seeds = {{"a", 1}, {"::1", 2}, {"10.0.0.3", 6379}}}},
        {"redis-cluster://app:p%40,s@a,b:3",
         {.seed_count = 2, .seeds = {{"a", 6379}, {"b", 3}}, .login = {"app", "p@,s", 0}}},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct redis_target *wanted = &CASES[i].target;
        const struct redis_target got = parse(CASES[i].url);

        cr_assert_eq(got.found, REDIS_BY_CLUSTER, "%s", CASES[i].url);
        cr_assert_eq(got.seed_count, wanted->seed_count, "%s", CASES[i].url);
        for (unsigned s = 0; s < got.seed_count; s++)
            cr_assert(redis_address_equal(&got.seeds[s], &wanted->seeds[s]), "%s", CASES[i].url);
        cr_assert_eq(got.tls, wanted->tls, "%s", CASES[i].url);
        cr_assert_str_eq(got.login.user, wanted->login.user, "%s", CASES[i].url);
        cr_assert_str_eq(got.login.password, wanted->login.password, "%s", CASES[i].url);
        cr_assert(got.host[0] == '\0' && got.port == 0 && got.db == 0 && !got.is_unix, "%s", CASES[i].url);
    }
}

Test(redis_target, reads_what_sentinels_ask_for)
{
    static const struct {
        const char *line, *user, *password; /* user NULL: refused */
    } CASES[] = {
        {"app:secret", "app", "secret"},
        {":secret", "", "secret"},
        {"app:s:e%40", "app", "s:e%40"},
        {"secret", NULL, NULL},
        {"", NULL, NULL},
        {"app:", NULL, NULL},
        {"app:hunter2\nmore", NULL, NULL},
        {A32 A32 A32 A32 ":secret", NULL, NULL},
        {"app:" A32 A32 A32 A32 A32 A32 A32 A32, NULL, NULL},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct redis_target got = {.login.user = "app"};
        struct buf why;

        buf_init(&why, 1024);
        cr_assert_eq(redis_target_add_sentinel_auth(text_of(CASES[i].line), &got, &why), CASES[i].user != NULL, "%s",
                     CASES[i].line);
        cr_assert_eq(why.len == 0, CASES[i].user != NULL, "%s", CASES[i].line);
        cr_assert(why.len == 0 || !memmem(why.ptr, why.len, "hunter2", 7), "%s", CASES[i].line);
        cr_assert_str_eq(got.sentinel_login.user, CASES[i].user ? CASES[i].user : "");
        cr_assert_str_eq(got.sentinel_login.password, CASES[i].password ? CASES[i].password : "");
        cr_assert_str_eq(got.login.user, "app", "the master's stays");
        buf_finish(&why);
    }
}

Test(redis_target, guesses_what_was_meant)
{
    static const struct {
        const char *url, *guess; /* NULL: none */
    } CASES[] = {
        {"127.0.0.1:6379", "did you mean redis:// before the host?"},
        {"localhost", "did you mean redis:// before the host?"},
        {"/run/redis.sock", "did you mean unix: before the path?"},
        {"hunter2", "did you mean redis:// before the host?"},
        {"app:hunter2@host", NULL},
        {"rediss:hunter2", NULL},
        {"app:hunter2", NULL},
        {"http://host", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct redis_target got;
        struct buf why;

        buf_init(&why, 1024);
        cr_assert(!redis_target_parse(text_of(CASES[i].url), &got, &why));
        buf_append_char(&why, '\0');
        cr_assert_eq(strstr(why.ptr, "did you mean") != NULL, CASES[i].guess != NULL, "%s", why.ptr);
        cr_assert(!CASES[i].guess || strstr(why.ptr, CASES[i].guess), "%s", why.ptr);
        cr_assert(!strstr(why.ptr, "hunter2"), "%s", why.ptr);
        buf_finish(&why);
    }
}

Test(redis_target, refuses_what_is_wrong_without_telling_the_password)
{
    static const char *const CASES[] = {
        "",
        "localhost:6379",
        "http://host",
        "rediss://",
        "rediss://host:0",
        "rediss-sentinel://a",
        "redis://",
        "redis://:6379",
        "redis://host:",
        "redis://host:0",
        "redis://host:65536",
        "redis://host:6379x",
        "redis://host/x",
        "redis://host/0?a=b",
        "redis://[::1",
        "redis://[::1]x",
        "redis://hunter2@host",
        "redis://u:hunter2%@host",
        "redis://u:hunter2%00@host",
        "redis://:hunter2@",
        "redis-sentinel://",
        "redis-sentinel://a",
        "redis-sentinel://a/",
        "redis-sentinel:///keys",
        "redis-sentinel://a,/keys",
        "redis-sentinel://a:0/keys",
        "redis-sentinel://a:b/keys",
        "redis-sentinel://a/my keys",
        "redis-sentinel://a/" A32 A32,
        "redis-sentinel://a/keys/x",
        "redis-sentinel://a/keys/0/1",
        "redis-sentinel://u:hunter2%@a/keys",
        "redis-sentinel://1,2,3,4,5,6,7,8,9,10/keys",
        "redis-cluster://",
        "redis-cluster:///",
        "redis-cluster://,a",
        "redis-cluster://a:0",
        "redis-cluster://a:b",
        "redis-cluster://a/1",
        "redis-cluster://a/keys",
        "redis-cluster://hunter2@a",
        "redis-cluster://u:hunter2%@a",
        "rediss-cluster://1,2,3,4,5,6,7,8,9,10",
        "unix:",
        "unix:relative",
        "unix://host/path",
        "unix:/path?",
        "unix:/path?timeout=1",
        "unix:/path?db=a&password=hunter2",
        "unix:/path?user=u",
        "unix:/" A32 A32 A32 A32,
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct redis_target got = {.port = 42};
        struct buf why;

        buf_init(&why, 1024);
        cr_assert(!redis_target_parse(text_of(CASES[i]), &got, &why), "%s", CASES[i]);
        cr_assert_eq(got.port, 42, "%s", CASES[i]);
        cr_assert(why.len > 20, "%s", CASES[i]);
        cr_assert_null(memmem(why.ptr, why.len, "hunter2", 7), "%s", CASES[i]);
        buf_finish(&why);
    }
}

/* Only users and passwords may differ. */
Test(redis_target, tells_whether_two_lead_to_the_same_place)
{
    static const char *const PLACES[] = {
        "redis://host/1",
        "redis://host/2",
        "redis://host:6380/1",
        "redis://other/1",
        "rediss://host/1",
        "unix:/host?db=1",
        "redis-sentinel://host/keys",
        "redis-sentinel://host/others",
        "redis-sentinel://host,other/keys",
        "redis-sentinel://other/keys",
        "redis-cluster://host",
        "redis-cluster://host:6380",
    };
    const struct redis_target secret = parse("redis-sentinel://one:a@host:26379/keys"),
                              renewed = parse("redis-sentinel://two:b@host/keys");

    cr_expect(redis_target_same_place(&secret, &renewed));
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++)
        for (size_t j = 0; j < sizeof PLACES / sizeof *PLACES; j++) {
            const struct redis_target a = parse(PLACES[i]), b = parse(PLACES[j]);

            cr_expect_eq(redis_target_same_place(&a, &b), i == j, "%s %s", PLACES[i], PLACES[j]);
        }
}

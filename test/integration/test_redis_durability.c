/* A Redis that lets nobody see its configuration, as managed services do: refused, unless an operator asserts that it
 * is durable. Everything that can still be seen is judged, and the assertion is told wherever somebody looks. */
#include "deadline.h"
#include "fixture.h"
#include "leak_guard.h"
#include "watched_keys.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(redis_durability, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { STEP_MS = 10 };

#define ASSERTED "--redis-durability", "asserted"
#define SERVE "serve", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", "--public-origin", NODE_ORIGIN

/* A service's user, as docker/redis/README.md describes it: without CONFIG. */
static const char MANAGED[] = "-@dangerous +role +info";
/* Of INFO only one section, which tells nothing about durability. */
static const char NEARLY_BLIND[] = "-@dangerous +role -info +info|server";

/* The fixture keeps the administrator's address, because it makes accounts and keys with it. */
struct service {
    struct fixture fixture;
    char url[PROCESS_PATH_BYTES + 40]; /* with the user of a managed service */
    bool sees_config;
};

static void set_user(struct service *service, const char *rights)
{
    char words[160], *argv[8] = {NULL}, *rest = words;

    service->sees_config = strstr(rights, "config|get") != NULL;
    snprintf(words, sizeof words, "%s", rights);
    for (size_t i = 0; i < sizeof argv / sizeof *argv && (argv[i] = strsep(&rest, " ")); i++)
        ;
    redis_server_tell(&service->fixture.redis, "ACL", "SETUSER", "app", "reset", "on", ">app-pass", "~chatelaine:*",
                      "&chatelaine:*", "+@all", argv[0], argv[1], argv[2], argv[3], argv[4], NULL);
}

static void service_start(struct service *service, const char *rights)
{
    fixture_use_one_redis("a cluster without replicas starts only if its settings are not judged");
    fixture_start(&service->fixture, 0, NULL);
    snprintf(service->url, sizeof service->url, "unix:%s?user=app&password=app-pass",
             service->fixture.redis.socket_path);
    set_user(service, rights);
    /* Such services keep no append-only file of their own. */
    redis_server_tell(&service->fixture.redis, "CONFIG", "SET", "appendonly", "no", NULL);
}

/* Runs a command as that user. */
static void expect_run(struct service *service, const char *const *args, int code, const char *in_out,
                       const char *in_err)
{
    struct redis_server as_admin = service->fixture.redis;
    char *out, *err;

    snprintf(service->fixture.redis.url, sizeof service->fixture.redis.url, "%s", service->url);
    cr_expect_eq(fixture_run(&service->fixture, args, NULL, &out, &err), code, "%s%s", out, err);
    service->fixture.redis = as_admin;
    cr_expect_not_null(strstr(out, in_out), "%s in %s", in_out, out);
    cr_expect_not_null(strstr(err, in_err), "%s in %s", in_err, err);
    cr_expect(!strstr(out, "no snapshots") || service->sees_config, "nobody can know that: %s", out);
    free(out);
    free(err);
}

static void add_node(struct service *service, const char *const *more)
{
    struct fixture *fixture = &service->fixture;

    fixture_start_node(fixture, fixture->node_count, "asserted", service->url, more);
    fixture->node_count++;
}

/* With asserted durability a node without a lease answers 503. */
static void make_key(const struct service *service, size_t node, struct fixture_key *ret_key)
{
    const struct watched_keys keys = {.fixture = &service->fixture};

    watched_keys_create(&keys, 0, "{\"name\":\"k\",\"mode\":\"live\"}", ret_key);
    watched_keys_await(&keys, node, ret_key, 200);
}

static void expect_told(const struct service *service, const char *log_line)
{
    const struct node *node = &service->fixture.nodes[0];
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_answer answer;
    char *log = node_log(node);

    cr_expect_not_null(strstr(log, log_line), "%s", log);
    cr_expect_eq(fixture_metric(&service->fixture, 0, "chatelaine_redis_durability_asserted"), 1);
    while (http_call(node->internal_port, &(struct http_call){.target = "/readyz"}, &answer) != 200)
        cr_assert(deadline_left_ms(deadline) > 0 && poll(NULL, 0, STEP_MS) == 0, "%s", answer.body);
    cr_expect_not_null(strstr(answer.body, "\"redis_durability\":\"asserted\""), "%s", answer.body);
    free(log);
}

static void expect_events(const struct service *service, unsigned asserted, unsigned observed)
{
    static const char *const TYPES[] = {"store.durability_asserted", "store.durability_observed"};
    const unsigned wanted[] = {asserted, observed};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    unsigned found[2];
    char reply[2048];

    /* A node writes the event after it says that it is ready. */
    do {
        redis_server_ask(&service->fixture.redis, reply, sizeof reply, "XRANGE",
                         fixture_name(service->fixture.account, "audit"), "-", "+", NULL);
        for (unsigned i = 0; i < 2; i++) {
            found[i] = 0;
            for (const char *at = reply; (at = strstr(at, TYPES[i])); at++)
                found[i]++;
        }
        poll(NULL, 0, STEP_MS);
    } while ((found[0] < wanted[0] || found[1] < wanted[1]) && deadline_left_ms(deadline) > 0);
    cr_expect_eq(found[0], asserted, "%s", reply);
    cr_expect_eq(found[1], observed, "%s", reply);
}

Test(redis_durability, a_service_that_forbids_config_is_refused_until_somebody_vouches_for_it)
{
    static const char *const OBSERVED[] = {SERVE, NULL};
    static const char *const DOCTOR[] = {"doctor", "--public-origin", NODE_ORIGIN, NULL};
    static const char *const DOCTOR_ASSERTED[] = {"doctor", ASSERTED, "--public-origin", NODE_ORIGIN, NULL};
    static const char *const MORE[] = {ASSERTED, NULL};
    static struct service service;
    struct fixture_key key;

    service_start(&service, MANAGED);
    expect_run(&service, OBSERVED, 3, "", "--redis-durability asserted");
    expect_run(&service, DOCTOR, 3, "unknown: Redis does not let this user read its configuration", "");
    expect_run(&service, DOCTOR_ASSERTED, 0, "asserted; INFO shows no append-only file", "");
    add_node(&service, MORE);
    expect_told(&service, "--redis-durability asserted: if Redis loses an acknowledged write");
    expect_events(&service, 1, 0);
    add_node(&service, MORE);
    make_key(&service, 1, &key);
    fixture_await_read(&service.fixture, 1);
    expect_events(&service, 1, 0);

    /* A node that sees the settings takes the assertion back. */
    redis_server_tell(&service.fixture.redis, "CONFIG", "SET", "appendonly", "yes", NULL);
    fixture_add_node(&service.fixture, NULL);
    expect_events(&service, 1, 1);
    fixture_stop(&service.fixture);
}

Test(redis_durability, what_can_be_seen_is_judged_all_the_same)
{
    static const char *const VOUCHED[] = {SERVE, ASSERTED, NULL};
    static const char *const STRICT[] = {SERVE, ASSERTED, "--lease-ms", "0", NULL};
    static const char *const DOCTOR[] = {"doctor", ASSERTED, "--public-origin", NODE_ORIGIN, NULL};
    static struct service service;

    service_start(&service, MANAGED);
    expect_run(&service, STRICT, 2, "", "--redis-durability asserted needs leases");
    redis_server_tell(&service.fixture.redis, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru", NULL);
    expect_run(&service, VOUCHED, 3, "", "maxmemory-policy noeviction");
    redis_server_tell(&service.fixture.redis, "CONFIG", "SET", "maxmemory-policy", "noeviction", NULL);
    set_user(&service, "-@dangerous +role +info +config|get");
    expect_run(&service, VOUCHED, 3, "", "set appendonly yes");
    expect_run(&service, DOCTOR, 3, "asserted, but CONFIG GET is allowed", "");
    fixture_stop(&service.fixture);
}

/* Redis reads its append-only file as the user `default`. */
Test(redis_durability, a_default_user_who_could_not_repeat_our_writes_is_seen)
{
    static const char *const STRICT[] = {SERVE, NULL};
    static const char *const DOCTOR[] = {"doctor", "--public-origin", NODE_ORIGIN, NULL};
    static struct service service;

    service_start(&service, "-@dangerous +role +info +config|get");
    redis_server_tell(&service.fixture.redis, "CONFIG", "SET", "appendonly", "yes", NULL);
    expect_run(&service, DOCTOR, 0, "unknown: Redis does not let this user ask", "");
    set_user(&service, "-@dangerous +role +info +config|get +acl|dryrun");
    expect_run(&service, DOCTOR, 0, "`default` may write our keys", "");
    redis_server_tell(&service.fixture.redis, "ACL", "SETUSER", "default", "resetkeys", "~other:*", NULL);
    expect_run(&service, DOCTOR, 3, "`default` may not write our keys", "");
    expect_run(&service, STRICT, 3, "", "ACL SETUSER default ~* &* +@all");
    redis_server_tell(&service.fixture.redis, "ACL", "SETUSER", "default", "~*", NULL);
    expect_run(&service, DOCTOR, 0, "`default` may write our keys", "");
    fixture_stop(&service.fixture);
}

Test(redis_durability, a_service_that_shows_nearly_nothing)
{
    static const char *const DOCTOR[] = {"doctor", ASSERTED, "--public-origin", NODE_ORIGIN, NULL};
    static const char *const OBSERVED[] = {"account", "list", "--redis-timeout-ms", "1000", NULL};
    static const char *const LIST[] = {"account", "list", ASSERTED, NULL};
    static const char *const MORE[] = {ASSERTED, NULL};
    static struct service service;
    struct fixture_key key;

    service_start(&service, NEARLY_BLIND);
    expect_run(&service, OBSERVED, 1, "", "that its ACL allows INFO");
    expect_run(&service, DOCTOR, 0, "asserted; INFO shows nothing about it", "");
    expect_run(&service, DOCTOR, 0, "maxmemory-policy             not visible, asserted", "");
    expect_run(&service, LIST, 0, "North Clinic", "");
    add_node(&service, MORE);
    make_key(&service, 0, &key);
    fixture_stop(&service.fixture);
}

/* A Redis that acknowledges no writes may have been replaced. */
Test(redis_durability, without_acknowledged_heartbeats_nothing_is_decided)
{
    static const char *const MORE[] = {ASSERTED, NULL};
    static struct service service;
    struct fixture_key key;

    service_start(&service, MANAGED);
    add_node(&service, MORE);
    make_key(&service, 0, &key);
    redis_server_tell(&service.fixture.redis, "CLIENT", "PAUSE", "600000", "WRITE", NULL);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int status;
    while ((status = fixture_try_key(&service.fixture, 0, key.secret)) != 503) {
        cr_assert_eq(status, 200);
        cr_assert_gt(deadline_left_ms(deadline), 0, "checks go on without a lease");
        poll(NULL, 0, STEP_MS);
    }
    while (!file_contains(service.fixture.nodes[0].process.err_path, "lease lost: checks are answered 503 until")) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "the log says something else");
        poll(NULL, 0, STEP_MS);
    }
    redis_server_tell(&service.fixture.redis, "CLIENT", "UNPAUSE", NULL);
    fixture_await_key(&service.fixture, 0, key.secret, 200);
    fixture_stop(&service.fixture);
}

static void expect_advice(struct fixture *fixture, const char *reason, bool is_advised)
{
    const char *const serve[] = {SERVE, NULL};
    char *err;

    cr_expect_eq(fixture_run(fixture, serve, NULL, NULL, &err), 3, "%s", err);
    cr_expect_not_null(strstr(err, reason), "%s", err);
    cr_expect_eq(strstr(err, "--unsafe-redis serves anyway") != NULL, is_advised, "%s", err);
    free(err);
}

/* It opens no store to a wrong master key, whatever else is wrong. */
Test(redis_durability, unsafe_redis_is_advised_only_where_it_serves)
{
    struct fixture fixture;
    char right[sizeof fixture.master_key_path], other[PROCESS_PATH_BYTES];

    fixture_use_one_redis("a cluster without replicas is unsafe already");
    fixture_start(&fixture, 0, NULL);
    memcpy(right, fixture.master_key_path, sizeof right);
    snprintf(other, sizeof other, "%.150s/other.key", fixture.folder);
    file_write(other, "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff");
    snprintf(fixture.master_key_path, sizeof fixture.master_key_path, "%s", other);
    expect_advice(&fixture, "This master key is not the one", false);
    redis_server_tell(&fixture.redis, "CONFIG", "SET", "appendfsync", "everysec", NULL);
    expect_advice(&fixture, "This master key is not the one", false);
    memcpy(fixture.master_key_path, right, sizeof right);
    expect_advice(&fixture, "Redis does not sync each write", true);
    fixture_stop(&fixture);
}

/* Its user may not read the settings, which are right. */
Test(redis_durability, status_does_not_guess)
{
    const char *const args[] = {"status", NULL};
    struct service service;
    char *out;

    service_start(&service, MANAGED);
    redis_server_tell(&service.fixture.redis, "CONFIG", "SET", "appendonly", "yes", NULL);
    expect_run(&service, args, 3, "unknown without +config|get: appendfsync, no-appendfsync-on-rewrite\n", "");
    snprintf(service.fixture.redis.url, sizeof service.fixture.redis.url, "%s", service.url);
    cr_expect_eq(fixture_run(&service.fixture, args, NULL, &out, NULL), 3);
    cr_expect_null(strstr(out, "does not sync"), "%s", out);
    const char *problem = strstr(out, "may not run CONFIG GET");
    cr_expect(problem && !strstr(problem + 1, "may not run CONFIG GET"), "once: %s", out);
    free(out);
    fixture_stop(&service.fixture);
}

#include "engine/fitness.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

TestSuite(fitness, .fini = leak_guard);

Test(fitness, looks_at_each_fact)
{
    const struct store_facts fit = {.redis_version = "7.2.4",
                                    .appendonly = true,
                                    .appendfsync_always = true,
                                    .no_fsync_on_rewrite_off = true,
                                    .noeviction = true,
                                    .writable = true,
                                    .replicas = 1,
                                    .schema = 1,
                                    .config_readable = true};
    static const struct {
        const char *version;
        bool good;
    } VERSIONS[] = {{"7.0.0", true}, {"8", true}, {"10.1.0", true}, {"6.2.14", false}, {"", false}, {"x", false}};
    struct store_facts facts;

    cr_assert_null(fitness_breach(&fit, FITNESS_ALL));
    for (size_t i = 0; i < sizeof VERSIONS / sizeof VERSIONS[0]; i++) {
        facts = fit;
        snprintf(facts.redis_version, sizeof facts.redis_version, "%s", VERSIONS[i].version);
        cr_assert_eq(fitness_breach(&facts, FITNESS_ALL) == NULL, VERSIONS[i].good, "%s", VERSIONS[i].version);
    }
#define EXPECT(fact, value, remedy)                                       \
    do {                                                                  \
        facts = fit;                                                      \
        facts.fact = value;                                               \
        cr_assert(strstr(fitness_breach(&facts, FITNESS_ALL), (remedy))); \
    } while (0)
    EXPECT(appendonly, false, "appendonly yes");
    EXPECT(appendfsync_always, false, "appendfsync always");
    EXPECT(no_fsync_on_rewrite_off, false, "no-appendfsync-on-rewrite no");
    EXPECT(noeviction, false, "noeviction");
    EXPECT(replay, STORE_REPLAY_DROPS, "ACL SETUSER default ~* &* +@all");
    EXPECT(writable, false, "master");
    EXPECT(is_of_cluster, true, "write redis-cluster://");
    EXPECT(schema, 3, "upgrade");
    EXPECT(config_readable, false, "+config|get");
    EXPECT(config_readable, false, "--redis-durability asserted");
    EXPECT(min_replicas, 2, "--min-replicas");
    EXPECT(keys, STORE_KEYS_OTHER, "as --master-key-file");
    EXPECT(keys, STORE_KEYS_LACKING, "--retired-master-key-file");
    EXPECT(keys, STORE_KEYS_UNNOTED, "--adopt");
#undef EXPECT
}

/* What an operator vouches for is never looked up where it can be seen. */
Test(fitness, believes_an_assertion_only_about_what_is_hidden)
{
    struct store_facts facts = {.redis_version = "7.2.4", .writable = true, .schema = 1, .noeviction = true};

    cr_assert(strstr(fitness_breach(&facts, FITNESS_ALL), "config|get"));
    facts.durability_asserted = true;
    cr_assert_null(fitness_breach(&facts, FITNESS_ALL), "no append-only file to be seen");
    facts.noeviction = false;
    cr_assert(strstr(fitness_breach(&facts, FITNESS_ALL), "noeviction"), "INFO shows it");
    facts.memory_hidden = true;
    cr_assert_null(fitness_breach(&facts, FITNESS_ALL));
    facts.min_replicas = 1;
    cr_assert(strstr(fitness_breach(&facts, FITNESS_ALL), "--min-replicas"));
    facts.replication_hidden = true;
    cr_assert_null(fitness_breach(&facts, FITNESS_ALL), "WAIT counts them");
    facts.config_readable = true;
    cr_assert(strstr(fitness_breach(&facts, FITNESS_ALL), "appendonly yes"), "CONFIG GET shows it");
    facts.appendonly = facts.noeviction = true;
    cr_assert(strstr(fitness_breach(&facts, FITNESS_ALL), "appendfsync always"));
}

Test(fitness, knows_what_fences_a_master_that_was_replaced)
{
    static const struct {
        int64_t sentinels, to_write, lag_s;
        const char *remedy;
    } CASES[] = {
        {0, 0, 0, NULL},
        {3, 1, 1, NULL},
        {1, 2, 2, NULL},
        {1, 0, 2, "min-replicas-to-write 1"},
        {3, 1, 0, "min-replicas-max-lag 2"},
        {3, 1, 3, "min-replicas-max-lag 2"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct store_facts facts = {
            .sentinels = CASES[i].sentinels, .replicas_to_write = CASES[i].to_write, .replica_lag_s = CASES[i].lag_s};
        const char *unfit = fitness_breach(&facts, FITNESS_FAILOVER);

        cr_assert_eq(unfit == NULL, CASES[i].remedy == NULL, "case %zu: %s", i, unfit);
        cr_assert(!unfit || strstr(unfit, CASES[i].remedy), "case %zu: %s", i, unfit);
    }
}

/* A replica may be promoted that does not know the leases that others have acknowledged. */
Test(fitness, knows_what_a_replica_must_know_of_leases)
{
    static const struct {
        int64_t known, min_replicas, lease_ms, timeout_ms;
        const char *remedy;
    } CASES[] = {
        {1, 1, 10000, 60000, NULL},
        {2, 2, 10000, 60000, NULL},
        {2, 1, 1000, 1000, NULL},
        {2, 1, 1001, 1000, "lower --lease-ms to 1000"},
        {3, 2, 3000, 1000, "lower --lease-ms to 1000"},
        {2, 1, 300, 1001, "lower --redis-timeout-ms to 1000"},
        {3, 1, 1000, 1000, NULL},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct store_facts facts = {.sentinels = 3,
                                    .replicas_to_write = 1,
                                    .replica_lag_s = 2,
                                    .replicas_known = CASES[i].known,
                                    .min_replicas = CASES[i].min_replicas,
                                    .lease_ms = CASES[i].lease_ms,
                                    .timeout_ms = CASES[i].timeout_ms};
        const char *unfit = fitness_breach(&facts, FITNESS_FAILOVER);

        cr_assert_eq(unfit == NULL, CASES[i].remedy == NULL, "case %zu: %s", i, unfit);
        cr_assert(!unfit || strstr(unfit, CASES[i].remedy), "case %zu: %s", i, unfit);
        facts.sentinels = 0;
        cr_assert_null(fitness_breach(&facts, FITNESS_FAILOVER), "nobody promotes one unasked");
        facts.is_cluster = true;
        facts.replicas_to_write = 0; /* cluster-node-timeout stops a primary too */
        cr_assert_eq(fitness_breach(&facts, FITNESS_FAILOVER), unfit, "case %zu", i);
        facts.durability_asserted = true;
        cr_assert_null(fitness_breach(&facts, FITNESS_FAILOVER), "whichever takes over knows");
    }
}

/* Otherwise a clock alone stops a master that was replaced. */
Test(fitness, half_of_the_replicas_must_know_each_lease)
{
    static const struct {
        int64_t usual, min_replicas;
        bool is_fit;
    } CASES[] = {{0, 1, true}, {1, 1, true}, {2, 1, true},  {3, 1, false}, {4, 1, false},
                 {3, 2, true}, {4, 2, true}, {5, 2, false}, {5, 3, true},  {1, 0, false}};

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct store_facts facts = {.sentinels = 3,
                                    .replicas_to_write = 2,
                                    .replica_lag_s = 2,
                                    .replicas_known = CASES[i].usual,
                                    .replicas_usual = CASES[i].usual,
                                    .min_replicas = CASES[i].min_replicas};
        const char *unfit = fitness_breach(&facts, FITNESS_START);

        cr_expect_eq(unfit == NULL, CASES[i].is_fit, "case %zu", i);
        cr_expect(!unfit || strstr(unfit, "raise --min-replicas to half the number of replicas"), "%s", unfit);
        cr_expect_eq(fitness_breach(&facts, FITNESS_ALL & ~(unsigned)FITNESS_UNSAFE & ~(unsigned)FITNESS_DURABLE),
                     unfit, "case %zu", i);
        facts.sentinels = 0;
        cr_expect_null(fitness_breach(&facts, FITNESS_START), "nobody promotes one unasked");
        facts.is_cluster = true;
        cr_expect_eq(fitness_breach(&facts, FITNESS_START), unfit, "case %zu", i);
        facts.durability_asserted = true;
        cr_expect_null(fitness_breach(&facts, FITNESS_START), "whichever takes over knows");
    }
}

/* A breach counts only among the kinds asked for: --unsafe-redis asks for fewer, and waiting helps only against
 * some. */
Test(fitness, breaks_by_kind)
{
    const struct store_facts unsafe = {.redis_version = "7.2.4", .writable = true, .sentinels = 3};
    const struct store_facts loading = {.redis_version = "7.2.4", .min_replicas = 1};
    const struct store_facts rotating = {.keys = STORE_KEYS_OTHER, .any_key_will_do = true};

    cr_assert_not_null(fitness_breach(&unsafe, FITNESS_ALL));
    cr_assert_not_null(fitness_breach(&unsafe, FITNESS_DURABLE));
    cr_assert_not_null(fitness_breach(&unsafe, FITNESS_FAILOVER));
    cr_assert_null(fitness_breach(&unsafe, FITNESS_UNSAFE));
    cr_assert_eq(FITNESS_UNSAFE & FITNESS_START, 0);
    cr_assert_not_null(fitness_breach(&loading, FITNESS_WAITS));
    cr_assert_null(fitness_breach(&loading, FITNESS_USABLE | FITNESS_KEYS));
    cr_assert_null(fitness_breach(&rotating, FITNESS_KEYS));
}

Test(fitness, names_are_unique)
{
    for (size_t i = 0; i < FITNESS_RULE_COUNT; i++)
        cr_assert_eq(fitness_rule(FITNESS_RULES[i].name), &FITNESS_RULES[i], "%s", FITNESS_RULES[i].name);
}

#include "redis/sentinel.h"
#include "base/metrics.h"
#include "fake_redis.h"
#include "deadline.h"
#include "kernel.h"
#include "leak_guard.h"
#include "links.h"
#include "redis/link_internal.h"
#include "test_loop.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    TIMEOUT_MS = 500, /* the longest that is waited for a Sentinel */
    SLOW_MS = 75,
    PEERS = 3,
    REDISES = 2,
    LINKS = 2,
    REPLY_BYTES = 256,
    REPLIES_MAX = 24
};

#define EVENTS_LINK "chatelaine-sentinel-events"
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"
#define SWITCHED "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$38\r\nkeys 127.0.0.1 1 127.0.0.1 2 and on....\r\n"
#define SWITCHED_OTHER "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$29\r\nother 127.0.0.1 1 127.0.0.1 2\r\n"
#define UNKNOWN "-ERR No such master with that name\r\n"
#define MASTER_ROLE FAKE_MASTER
#define REPLICA_ROLE FAKE_REPLICA

/* Three Sentinels, two Redises, and two links that follow them. */
static struct world {
    uv_loop_t loop;
    struct fake_redis *peers[PEERS], *redises[REDISES];
    struct redis_sentinel *sentinel;
    struct redis_link *links[LINKS];
    unsigned ups, downs;
    bool is_sentinel_closed;
    char replies[REPLIES_MAX][REPLY_BYTES]; /* rules keep pointers to them */
    unsigned reply_count;
} w;

static void ignore_sigpipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

TestSuite(redis_sentinel, .init = ignore_sigpipe, .fini = leak_guard);

static void rule(struct fake_redis *fake, const char *command, const char *answer, unsigned times)
{
    fake_redis_rule(fake, &(struct fake_rule){command, FAKE_ANSWER, answer, 0, times, false});
}

__attribute__((format(printf, 1, 2))) static const char *reply(const char *format, ...)
{
    va_list args;

    cr_assert_lt(w.reply_count, REPLIES_MAX);
    va_start(args, format);
    vsnprintf(w.replies[w.reply_count], REPLY_BYTES, format, args);
    va_end(args);
    return w.replies[w.reply_count++];
}

/* From now on, the Sentinel names that Redis, with that epoch. */
static void name(unsigned peer, unsigned redis, unsigned epoch)
{
    char port[8];
    int length = snprintf(port, sizeof port, "%u", fake_redis_port(w.redises[redis]));

    rule(w.peers[peer], "SENTINEL MASTER keys",
         reply("*8\r\n$4\r\nname\r\n$4\r\nkeys\r\n$12\r\nconfig-epoch\r\n$1\r\n%u\r\n$6\r\nquorum\r\n$1\r\n2\r\n"
               "$19\r\nnum-other-sentinels\r\n$1\r\n2\r\n",
               epoch),
         0);
    rule(w.peers[peer], "SENTINEL GET-MASTER-ADDR-BY-NAME keys",
         reply("*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", length, port), 0);
}

/* The rest of the answer does not matter here. */
static void count(unsigned peer, unsigned replicas)
{
    rule(w.peers[peer], "SENTINEL MASTER keys",
         reply("*4\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n$10\r\nnum-slaves\r\n$1\r\n%u\r\n", replicas), 0);
}

static void name_at_all(unsigned redis, unsigned epoch)
{
    for (unsigned i = 0; i < PEERS; i++)
        name(i, redis, epoch);
}

static void open_fakes(void)
{
    memset(&w, 0, sizeof w);
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    for (unsigned i = 0; i < REDISES; i++) {
        w.redises[i] = fake_redis_create(&w.loop, NULL);
        rule(w.redises[i], "ROLE", MASTER_ROLE, 0);
    }
    for (unsigned i = 0; i < PEERS; i++) {
        w.peers[i] = fake_redis_create(&w.loop, NULL);
        rule(w.peers[i], "SUBSCRIBE", SUBSCRIBED, 0);
        rule(w.peers[i], "SENTINEL", UNKNOWN, 0);
    }
}

static void on_ready(void *arg, bool is_up)
{
    (void)arg;
    w.ups += is_up;
    w.downs += !is_up;
}

static void open_links(void)
{
    struct redis_target target = {.master_name = "keys",
                                  .seed_count = PEERS,
                                  .login = {"app", "of-redis", 0},
                                  .sentinel_login = {"watcher", "of-sentinels", 0}};
    struct redis_link_settings settings = {
        .name = "link", .timeout_ms = PATIENCE_MS, .backoff_max_ms = 100, .calls_max = 4, .to_master = true};

    for (unsigned i = 0; i < PEERS; i++)
        target.seeds[i] = (struct redis_address){"127.0.0.1", fake_redis_port(w.peers[i])};
    w.sentinel = redis_sentinel_create(&w.loop, &target, NULL, TIMEOUT_MS);
    settings.resolver = redis_sentinel_resolver(w.sentinel);
    for (unsigned i = 0; i < LINKS; i++)
        w.links[i] = redis_link_create(&w.loop, &target, &settings, on_ready, NULL);
}

static void on_sentinel_closed(void *arg)
{
    (void)arg;
    w.is_sentinel_closed = true;
}

static void close_all(void)
{
    links_close(&w.loop, w.links, LINKS);
    redis_sentinel_close(w.sentinel, on_sentinel_closed, NULL);
    cr_assert(!w.is_sentinel_closed);
    cr_assert(test_loop_until_set(&w.loop, &w.is_sentinel_closed, PATIENCE_MS));
    for (unsigned i = 0; i < PEERS; i++)
        fake_redis_close(w.peers[i]);
    for (unsigned i = 0; i < REDISES; i++)
        fake_redis_close(w.redises[i]);
    cr_assert(test_loop_finish(&w.loop));
}

static bool are_links_ready(void *arg)
{
    (void)arg;
    return redis_link_is_ready(w.links[0]) && redis_link_is_ready(w.links[1]);
}

static bool have_moved(void *redis)
{
    return are_links_ready(NULL) && fake_redis_count(redis, "ROLE") >= LINKS;
}

static void until(test_loop_predicate *predicate, void *arg)
{
    cr_assert(test_loop_until(&w.loop, predicate, arg, PATIENCE_MS), "%s", redis_link_trouble(w.links[0]));
}

static bool is_census_taken(void *knowing)
{
    return redis_sentinel_census(w.sentinel).knowing == *(unsigned *)knowing;
}

Test(redis_sentinel, leads_all_links_to_the_master)
{
    open_fakes();
    name_at_all(1, 0);
    open_links();
    until(are_links_ready, NULL);
    cr_assert_eq(fake_redis_count(w.redises[1], "ROLE"), LINKS, "each looks at its role");
    cr_assert_eq(fake_redis_accepted(w.redises[0]), 0);
    cr_assert_eq(w.downs, 0);
    cr_assert_eq(metric_values[METRIC_REDIS_SWITCHES], 0);
    close_all();
}

Test(redis_sentinel, keeps_the_passwords_of_redis_and_sentinels_apart)
{
    open_fakes();
    name_at_all(0, 1);
    open_links();
    until(are_links_ready, NULL);
    cr_assert_eq(fake_redis_count(w.redises[0], "AUTH"), LINKS);
    cr_assert_eq(fake_redis_count(w.redises[0], "AUTH app of-redis"), LINKS);
    for (unsigned i = 0; i < PEERS; i++)
        cr_assert_eq(fake_redis_count(w.peers[i], "AUTH"), fake_redis_count(w.peers[i], "AUTH watcher of-sentinels"));
    cr_assert_gt(fake_redis_count(w.peers[0], "AUTH") + fake_redis_count(w.peers[1], "AUTH"), 0);
    close_all();
}

/* Not in the next round, a second later. A busy machine gets several tries. */
Test(redis_sentinel, asks_as_soon_as_one_is_connected)
{
    uint64_t took_ms = UINT64_MAX;

    for (unsigned i = 0; i < 5 && took_ms > 500; i++) {
        open_fakes();
        name_at_all(0, 1);
        uint64_t start_ns = uv_hrtime();
        open_links();
        until(are_links_ready, NULL);
        took_ms = (uv_hrtime() - start_ns) / 1000000;
        close_all();
    }
    cr_assert_leq(took_ms, 500);
}

Test(redis_sentinel, needs_one_that_knows)
{
    unsigned knowing = 1;

    open_fakes();
    fake_redis_go_away(w.peers[0]);
    name(2, 0, 3); /* the second answers that it does not know this master */
    open_links();
    until(are_links_ready, NULL);
    until(is_census_taken, &knowing);
    struct sentinel_census census = redis_sentinel_census(w.sentinel);
    cr_assert(census.asked == 3 && census.agreeing == 1 && census.quorum == 2 && census.others == 2);
    close_all();
}

static int64_t replicas(void)
{
    const struct redis_resolver *resolver = redis_sentinel_resolver(w.sentinel);

    return resolver->replicas(resolver);
}

static bool knows_replicas(void *count)
{
    return replicas() == *(int64_t *)count;
}

static void until_replicas(int64_t count)
{
    until(knows_replicas, &count);
}

/* A replica that only one of them knows can be promoted, and that one cannot report it once it is down. */
Test(redis_sentinel, counts_the_replicas_of_whoever_knows_most)
{
    open_fakes();
    name_at_all(0, 1);
    open_links();
    until(are_links_ready, NULL);
    cr_assert_eq(replicas(), 0);
    count(0, 2);
    count(1, 3);
    until_replicas(3);
    fake_redis_go_away(w.peers[1]);
    unsigned knowing = 2;
    until(is_census_taken, &knowing);
    cr_assert_eq(replicas(), 3, "as it last told");
    fake_redis_come_back(w.peers[1]);
    count(1, 1);
    until_replicas(2);
    close_all();
}

static const char *wanted_trouble;

static bool has_trouble(void *arg)
{
    (void)arg;
    return strstr(redis_link_trouble(w.links[0]), wanted_trouble);
}

static void until_trouble(const char *trouble)
{
    wanted_trouble = trouble;
    until(has_trouble, NULL);
}

Test(redis_sentinel, tells_why_there_is_no_master)
{
    open_fakes();
    open_links();
    until_trouble("no Sentinel knows a master of that name");
    for (unsigned i = 0; i < PEERS; i++)
        fake_redis_go_away(w.peers[i]);
    until_trouble("no Sentinel answers: Sentinel 127.0.0.1:");
    cr_assert_eq(w.ups, 0);
    close_all();
}

Test(redis_sentinel, tells_which_one_refuses_to_answer)
{
    open_fakes();
    for (unsigned i = 0; i < PEERS; i++)
        rule(w.peers[i], "SENTINEL", "-NOPERM User watcher has no permissions\r\n", 0);
    open_links();
    until_trouble(": NOPERM User watcher has no permissions");
    cr_assert(strstr(redis_sentinel_census(w.sentinel).trouble, "Sentinel 127.0.0.1:"));
    for (unsigned i = 0; i < PEERS; i++) {
        rule(w.peers[i], "AUTH", "-WRONGPASS invalid username-password pair or user is disabled.\r\n", 0);
        fake_redis_hang_up(w.peers[i], "chatelaine-sentinel");
    }
    until_trouble("user is disabled (see --sentinel-auth-file)");
    cr_assert_eq(w.ups, 0);
    close_all();
}

/* Redis answers that before it asks for a password. */
Test(redis_sentinel, tells_a_redis_that_is_no_sentinel)
{
    open_fakes();
    for (unsigned i = 0; i < PEERS; i++) {
        rule(w.peers[i], "SENTINEL", "-ERR unknown command 'SENTINEL', with args beginning with: 'MASTER'\r\n", 0);
        rule(w.peers[i], "AUTH", "-WRONGPASS invalid username-password pair or user is disabled.\r\n", 0);
    }
    open_links();
    until_trouble(": this is no Sentinel: name Sentinels behind redis-sentinel://");
    cr_assert_eq(w.ups, 0);
    close_all();
}

static bool has_asked_often(void *redis)
{
    return fake_redis_count(redis, "ROLE") > 2 * LINKS;
}

Test(redis_sentinel, does_not_use_a_replica_that_is_named_as_master)
{
    open_fakes();
    rule(w.redises[0], "ROLE", REPLICA_ROLE, 0);
    name_at_all(0, 1);
    open_links();
    until(has_asked_often, w.redises[0]);
    cr_assert_eq(w.ups, 0);
    cr_assert(strstr(redis_link_trouble(w.links[0]), "replica"));
    rule(w.redises[0], "ROLE", MASTER_ROLE, 0);
    until(are_links_ready, NULL);
    close_all();
}

Test(redis_sentinel, moves_all_links_when_told_of_a_switch)
{
    open_fakes();
    name_at_all(0, 1);
    open_links();
    until(are_links_ready, NULL);
    name_at_all(1, 2);
    fake_redis_push(w.peers[2], EVENTS_LINK, SWITCHED_OTHER);
    fake_redis_push(w.peers[2], EVENTS_LINK, SWITCHED);
    until(have_moved, w.redises[1]);
    cr_assert_eq(w.downs, LINKS, "the old master still answered");
    cr_assert_eq(metric_values[METRIC_REDIS_SWITCHES], 1);
    close_all();
}

static bool are_links(void *state)
{
    return w.links[0]->state == *(enum link_state *)state && w.links[1]->state == *(enum link_state *)state;
}

static void tell_move(void)
{
    const struct redis_address master = {"127.0.0.1", fake_redis_port(w.redises[1])};

    for (unsigned i = 0; i < LINKS; i++)
        link_on_moved(w.links[i], &master);
}

Test(redis_sentinel, links_that_are_about_to_connect_elsewhere_do_not)
{
    enum link_state connecting = LINK_CONNECTING;

    open_fakes();
    name_at_all(0, 1);
    open_links();
    until(are_links, &connecting);
    name_at_all(1, 2);
    tell_move();
    until(are_links_ready, NULL);
    cr_assert_eq(fake_redis_count(w.redises[0], "ROLE"), 0);
    cr_assert_eq(fake_redis_count(w.redises[1], "ROLE"), LINKS);
    close_all();
}

Test(redis_sentinel, links_that_wait_connect_at_once)
{
    enum link_state waiting = LINK_WAITING;

    open_fakes();
    open_links();
    until(are_links, &waiting);
    link_arm(w.links[0], PATIENCE_MS);
    tell_move();
    cr_assert_eq(uv_timer_get_due_in(&w.links[0]->timer), 0);
    cr_assert_eq(w.links[0]->attempts, 0);
    close_all();
}

static unsigned asked;

static bool is_asked_again(void *arg)
{
    (void)arg;
    return fake_redis_count(w.peers[0], "SENTINEL GET") > asked;
}

/* The time until the next round of questions. */
static uint64_t until_asked(void)
{
    uint64_t start_ns = uv_hrtime();

    asked = fake_redis_count(w.peers[0], "SENTINEL GET");
    until(is_asked_again, NULL);
    return (uv_hrtime() - start_ns) / 1000000;
}

/* Rounds come each second; a busy machine gets several tries. The second Sentinel is slow, so that the previous round
 * is not over yet. */
Test(redis_sentinel, asks_at_once_when_told_of_a_switch)
{
    uint64_t took_ms = UINT64_MAX;
    unsigned knowing = 2;

    open_fakes();
    name_at_all(0, 1);
    fake_redis_rule(w.peers[1], &(struct fake_rule){"SENTINEL GET", FAKE_ANSWER, UNKNOWN, SLOW_MS, 0, false});
    open_links();
    until(is_census_taken, &knowing);
    (void)until_asked();
    for (unsigned i = 0; i < 5 && took_ms > 500; i++) {
        (void)until_asked();
        fake_redis_push(w.peers[2], EVENTS_LINK, SWITCHED);
        took_ms = until_asked();
    }
    cr_assert_leq(took_ms, 500);
    close_all();
}

Test(redis_sentinel, notices_a_switch_that_nobody_told_of)
{
    open_fakes();
    name_at_all(0, 1);
    open_links();
    until(are_links_ready, NULL);
    name(1, 1, 2); /* one with a newer epoch is enough */
    until(have_moved, w.redises[1]);
    close_all();
}

static bool has_reconnected(void *redis)
{
    return have_moved(redis) && fake_redis_count(redis, "ROLE") >= 2 * LINKS;
}

Test(redis_sentinel, is_not_led_back_by_one_that_was_away)
{
    open_fakes();
    name_at_all(1, 5);
    open_links();
    until(are_links_ready, NULL);
    fake_redis_go_away(w.peers[0]);
    fake_redis_go_away(w.peers[1]);
    name(2, 0, 4);
    fake_redis_hang_up(w.redises[1], "chatelaine-link");
    until(has_reconnected, w.redises[1]);
    cr_assert_eq(fake_redis_accepted(w.redises[0]), 0);
    close_all();
}

static bool do_two_agree(void *arg)
{
    (void)arg;
    return redis_sentinel_census(w.sentinel).knowing == 3 && redis_sentinel_census(w.sentinel).agreeing == 2;
}

Test(redis_sentinel, stays_with_the_master_while_equals_disagree)
{
    open_fakes();
    name_at_all(1, 5);
    open_links();
    until(are_links_ready, NULL);
    name(0, 0, 5);
    until(do_two_agree, NULL);
    cr_assert_eq(w.downs, 0);
    close_all();
}

Test(redis_sentinel, follows_sentinels_that_were_set_up_anew)
{
    open_fakes();
    name_at_all(0, 9);
    open_links();
    until(are_links_ready, NULL);
    name_at_all(1, 0);
    until(have_moved, w.redises[1]);
    close_all();
}

static bool are_peers_lost(void *arg)
{
    (void)arg;
    return redis_sentinel_census(w.sentinel).knowing == 0;
}

Test(redis_sentinel, leaves_links_alone_while_no_sentinel_is_there)
{
    open_fakes();
    name_at_all(0, 1);
    open_links();
    until(are_links_ready, NULL);
    for (unsigned i = 0; i < PEERS; i++)
        fake_redis_go_away(w.peers[i]);
    until(are_peers_lost, NULL);
    cr_assert(are_links_ready(NULL) && w.downs == 0);
    fake_redis_hang_up(w.redises[0], "chatelaine-link");
    until_trouble("no Sentinel answers");
    cr_assert_eq(fake_redis_count(w.redises[0], "ROLE"), LINKS, "an unconfirmed master is not connected to");
    for (unsigned i = 0; i < PEERS; i++)
        fake_redis_come_back(w.peers[i]);
    until(are_links_ready, NULL);
    close_all();
}

static bool is_asked(void *peer)
{
    return fake_redis_count(peer, "SENTINEL GET") > 0;
}

static void ignore_questions(struct fake_redis *peer)
{
    fake_redis_rule(peer, &(struct fake_rule){.command = "SENTINEL GET", .action = FAKE_SILENT});
    fake_redis_rule(peer, &(struct fake_rule){.command = "SENTINEL MASTER keys", .action = FAKE_SILENT});
}

Test(redis_sentinel, closes_while_a_question_is_open)
{
    open_fakes();
    ignore_questions(w.peers[0]);
    open_links();
    until(is_asked, w.peers[0]);
    close_all();
}

Test(redis_sentinel, does_not_wait_for_a_silent_one)
{
    open_fakes();
    ignore_questions(w.peers[0]);
    name(1, 0, 1);
    open_links();
    until(are_links_ready, NULL);
    close_all();
}

Test(redis_sentinel, takes_nothing_that_cannot_be)
{
    static const char *const ADDRESSES[] = {
        "*2\r\n$0\r\n\r\n$4\r\n6379\r\n",
        "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n0\r\n",
        "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n65536\r\n",
        "*1\r\n$9\r\n127.0.0.1\r\n",
        "*2\r\n$9\r\n127.0.0.1\r\n$2\r\n-1\r\n",
        "$9\r\n127.0.0.1\r\n",
        "*-1\r\n",
    };

    for (size_t i = 0; i < sizeof ADDRESSES / sizeof *ADDRESSES; i++) {
        open_fakes();
        name_at_all(0, 1);
        for (unsigned peer = 0; peer < PEERS; peer++)
            rule(w.peers[peer], "SENTINEL GET-MASTER-ADDR-BY-NAME", ADDRESSES[i], 0);
        open_links();
        until_trouble("no Sentinel knows a master of that name");
        close_all();
    }
}

/* A master's address counts only together with its epoch. */
Test(redis_sentinel, takes_no_master_without_its_epoch)
{
    open_fakes();
    name_at_all(0, 1);
    for (unsigned peer = 0; peer < PEERS; peer++)
        rule(w.peers[peer], "SENTINEL MASTER", UNKNOWN, 0);
    open_links();
    until_trouble("no Sentinel knows a master of that name");
    cr_assert_eq(w.ups, 0);
    close_all();
}

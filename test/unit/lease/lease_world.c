#include "lease_world.h"
#include "redis/link_internal.h"
#include "engine/state.h"
#include "kernel.h"
#include "records/store_parts.h"
#include <criterion/criterion.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 512 };

struct lease_world w;

void ignore_sigpipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

static void set(void *flag)
{
    cr_assert_not(*(bool *)flag, "twice");
    *(bool *)flag = true;
}

bool has_lease(void *arg)
{
    uint64_t now_ns;

    (void)arg;
    return membership_has_lease(w.member, &now_ns);
}

bool may_fill(uint64_t epoch)
{
    return membership_may_fill(w.member, epoch);
}

static void on_ended(void *arg)
{
    (void)arg;
    w.ended++;
    cr_assert_not(has_lease(NULL), "the lease is gone before");
}

static void on_invalidated(void *arg, const uint8_t digest[KEY_DIGEST_BYTES])
{
    (void)arg;
    w.invalidated++;
    memcpy(w.digest, digest, sizeof w.digest);
    w.epoch_when_told = membership_epoch(w.member);
    cr_assert_lt(fake_redis_count(w.fake, "PUBLISH"), w.invalidated, "acknowledged before it was told");
}

void rule(const char *command, enum fake_action action, const char *answer, unsigned times)
{
    fake_redis_rule(w.fake,
                    &(struct fake_rule){.command = command, .action = action, .answer = answer, .times = times});
}

void open_fake(void)
{
    memset(&w, 0, sizeof w);
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    w.timeout_ms = PATIENCE_MS;
    w.prefix = "t:";
    w.fake = fake_redis_create(&w.loop, NULL);
    rule("TIME", FAKE_ANSWER, "*2\r\n$1\r\n1\r\n$1\r\n0\r\n", 0);
    rule("INFO", FAKE_ANSWER,
         "$133\r\nredis_version:7.0.15\r\n" FAKE_RUN_ID
         "slave0:ip=x,state=online,offset=1\r\nslave1:ip=y,state=online,\r\n\r\n",
         0);
    rule("CONFIG", FAKE_ANSWER, "-NOPERM no\r\n", 0);
    rule("EVALSHA", FAKE_ANSWER, OK_REPLY, 0);
    rule("SUBSCRIBE", FAKE_ANSWER, "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n", 0);
    rule("PUBLISH", FAKE_ANSWER, ":1\r\n", 0);
    rule("WAIT", FAKE_ANSWER, ":2\r\n", 0);
    rule("GET t:dead:", FAKE_ANSWER, "$-1\r\n", 0);
}

void open_sentinel(void)
{
    char port[8];
    int length = snprintf(port, sizeof port, "%u", fake_redis_port(w.fake));

    snprintf(w.address, sizeof w.address, "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", length, port);
    w.sentinel = fake_redis_create(&w.loop, NULL);
    fake_redis_rule(w.sentinel, &(struct fake_rule){.command = "SENTINEL GET-MASTER", .answer = w.address});
    fake_redis_rule(w.sentinel, &(struct fake_rule){.command = "SENTINEL MASTER",
                                                    .answer = "*2\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n"});
    fake_redis_rule(w.sentinel, &(struct fake_rule){.command = "SUBSCRIBE",
                                                    .answer = "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"});
}

void name_script(enum script script, char ret_command[SCRIPT_BYTES])
{
    snprintf(ret_command, SCRIPT_BYTES, "EVALSHA %.*s", TEXT_ARG(script_sha1(w.store, script)));
}

const char *in_our_store(uint64_t answered, const char *change)
{
    static char text[160];

    snprintf(text, sizeof text,
             " 1 t:store:" FAKE_STORE_ID ":%s:%" PRIu64 "%s t: ", chains_maker(lease_chains(store_lease(w.store))),
             answered, change);
    return text;
}

static void on_store_told(void *arg)
{
    (void)arg;
    w.store_told++;
}

void join(uint32_t lease_ms)
{
    static const struct membership_events EVENTS = {.on_invalidated = on_invalidated, .on_ended = on_ended};
    struct store_settings settings = {
        .parts = STORE_PARTS,
        .keyring = w.keyring,
        .target = {.host = "127.0.0.1", .port = fake_redis_port(w.fake)},
        .timeout_ms = w.timeout_ms,
        .prefix = w.prefix,
        .audit_max = 100,
        .min_replicas = w.min_replicas,
        .unsafe_redis = !w.is_safe,
    };

    if (w.sentinel)
        settings.target = (struct redis_target){.found = REDIS_BY_SENTINEL,
                                                .master_name = "keys",
                                                .seed_count = 1,
                                                .seeds = {{"127.0.0.1", fake_redis_port(w.sentinel)}}};
    w.store = store_create(&w.loop, &settings, on_store_told, NULL);
    w.member = lease_join(store_lease(w.store), &settings.target, lease_ms);
    membership_listen(w.member, &EVENTS, NULL);
    name_script(SCRIPT_node_heartbeat, w.heartbeat);
    name_script(SCRIPT_node_leave, w.leave);
    name_script(SCRIPT_node_gather, w.gather);
    rule(w.gather, FAKE_ANSWER, FAKE_GATHERED, 0);
}

/* The name to which others send acknowledgements. */
void own_name(struct member_name *ret_name)
{
    struct barrier *barrier = barrier_begin(lease_barriers(store_lease(w.store)));

    snprintf(ret_name->text, sizeof ret_name->text, "%.*s", TEXT_ARG(barrier_member(barrier)));
    barrier_drop(barrier);
}

void until(test_loop_predicate *predicate, void *arg)
{
    cr_assert(test_loop_until(&w.loop, predicate, arg, PATIENCE_MS), "store: %s", store_trouble(w.store));
}

void time_out_soon(void)
{
    w.store->settings.timeout_ms = TIMEOUT_MS;
    for (size_t i = 0; i < w.store->links.count; i++)
        w.store->links.links[i]->timeout_ms = TIMEOUT_MS;
}

static void leave(void)
{
    membership_close(w.member, set, &w.is_member_closed);
    cr_assert_not(w.is_member_closed);
}

void close_world(void)
{
    if (!w.is_member_closed)
        leave();
    cr_assert(test_loop_until_set(&w.loop, &w.is_member_closed, PATIENCE_MS));
    store_close(w.store, set, &w.is_store_closed);
    cr_assert(test_loop_until_set(&w.loop, &w.is_store_closed, PATIENCE_MS));
    fake_redis_close(w.fake);
    if (w.sentinel)
        fake_redis_close(w.sentinel);
    cr_assert(test_loop_finish(&w.loop));
}

/* What Redis saw and what it pushes */

unsigned heartbeats(void)
{
    return fake_redis_count(w.fake, w.heartbeat);
}

bool has_heartbeats(void *count)
{
    return heartbeats() >= *(unsigned *)count;
}

void until_heartbeats(unsigned count)
{
    until(has_heartbeats, &count);
}

/* arg: how a command begins */
static bool has_command(void *arg)
{
    return fake_redis_count(w.fake, *(const char **)arg) > 0;
}

void until_command(const char *command)
{
    until(has_command, &command);
}

static void copy_word(char **rest, char *ret_word, size_t size)
{
    const char *word = strsep(rest, " ");

    cr_assert(word && strlen(word) < size);
    snprintf(ret_word, size, "%s", word);
}

struct heartbeat heartbeat_at(unsigned n)
{
    const char *command = fake_redis_command(w.fake, w.heartbeat, n);
    struct heartbeat heartbeat;
    char words[256], *rest = words;

    cr_assert_not_null(command);
    cr_assert_not_null(strstr(command, ":0 t: "), "nothing was answered: %s", command);
    snprintf(words, sizeof words, "%s", strstr(command, " t: ") + strlen(" t: "));
    copy_word(&rest, heartbeat.membership, sizeof heartbeat.membership);
    copy_word(&rest, heartbeat.number, sizeof heartbeat.number);
    copy_word(&rest, heartbeat.lease, sizeof heartbeat.lease);
    copy_word(&rest, heartbeat.nonce, sizeof heartbeat.nonce);
    char *era = strrchr(rest, ' ');
    cr_assert_not_null(era, "the era: %s", command);
    *era++ = '\0';
    char *known = strrchr(rest, ' ');
    cr_assert_not_null(known, "behind what the node knows of the store's time, the chains: %s", command);
    copy_word(&(char *){known + 1}, heartbeat.known, sizeof heartbeat.known);
    copy_word(&era, heartbeat.era, sizeof heartbeat.era);
    return heartbeat;
}

void push(const char *channel, const char *payload)
{
    char message[MESSAGE_BYTES];

    snprintf(message, sizeof message, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(channel), channel,
             strlen(payload), payload);
    fake_redis_push(w.fake, "chatelaine-invalidations", message);
}

void push_own(const char *payload)
{
    struct member_name name;
    char channel[64];

    own_name(&name);
    snprintf(channel, sizeof channel, "t:node:%s", name.text);
    push(channel, payload);
}

void echo(unsigned n)
{
    char payload[64];

    snprintf(payload, sizeof payload, "lease %s", heartbeat_at(n).nonce);
    push_own(payload);
}

void echo_all(void)
{
    for (; w.echoed < heartbeats(); w.echoed++)
        echo(w.echoed);
}

bool has_lease_by_echoes(void *arg)
{
    echo_all();
    return has_lease(arg);
}

bool is_live(void *arg)
{
    struct member_name name;

    (void)arg;
    own_name(&name);
    return strcmp(name.text, "-") != 0;
}

bool has_ended(void *times)
{
    return w.ended >= *(unsigned *)times;
}

void until_ended(unsigned times)
{
    until(has_ended, &times);
}

unsigned subscriptions(void)
{
    return fake_redis_count(w.fake, "SUBSCRIBE " INVALIDATIONS);
}

/* On a busy machine, a membership may end before it. */
void until_first_lease(void)
{
    until(has_lease_by_echoes, NULL);
    w.ended = 0;
    w.subscribed = subscriptions();
}

void open_with_lease(uint32_t lease_ms)
{
    open_fake();
    join(lease_ms);
    until_first_lease();
}

bool has_subscribed_again(void *arg)
{
    (void)arg;
    return subscriptions() > w.subscribed;
}

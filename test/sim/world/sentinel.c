#include "sentinel_internal.h"
#include "base/check.h"
#include "base/mem.h"
#include "trace.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TICK_MS = 100,
    ASK_EVERY_MS = 500,
    DOWN_AFTER_MS = 1000,
    ELECTION_MS = 2000,
    FAILOVER_MS = 2000, /* failover-timeout: a failover that has not come to its end by then is given up */
    STANDS_ONE_IN = 4,  /* each tick */
    MEND_MS = 2000,     /* a Redis that goes on in another role is told so often what it is */
};

unsigned sim_sentinel_master(const struct sim_sentinel *sentinel)
{
    return sentinel->master;
}

uint64_t sim_sentinel_epoch(const struct sim_sentinel *sentinel)
{
    return sentinel->config_epoch;
}

static bool is_older(uint64_t since_ns, uint64_t ms)
{
    return sim_now_ns() > since_ns + ms * NS_PER_MS;
}

static bool is_down(const struct watch *watch)
{
    return is_older(watch->heard_ns, DOWN_AFTER_MS);
}

/* Or it has said for long that it is a replica. */
bool sentinel_misses_master(const struct sim_sentinel *sentinel)
{
    const struct watch *master = &sentinel->redises[sentinel->master];

    return is_down(master) || (master->odd_ns > 0 && is_older(master->odd_ns, DOWN_AFTER_MS + 2 * ASK_EVERY_MS));
}

/* Connections that it made */

static void close_watch(struct watch *watch)
{
    if (watch->socket)
        sim_actor_close(watch->socket);
    watch->socket = NULL;
    watch->is_up = false;
    watch->asked_ns = 0;
    buf_clear(&watch->in);
}

static void say(struct watch *watch, const char *line)
{
    if (watch->is_up)
        (void)sim_actor_send(watch->socket, line, strlen(line));
}

/* Its clients must look for the master anew. */
static void become(struct sim_sentinel *sentinel, unsigned index, bool is_master)
{
    struct watch *watch = &sentinel->redises[index];
    struct buf line = BUF_FIXED(256);
    char ip[INET_ADDRSTRLEN];

    if (!watch->is_up)
        return;
    inet_ntop(AF_INET, &sentinel->redises[sentinel->master].ip, ip, sizeof ip);
    if (is_master)
        buf_append_str(&line, "REPLICAOF NO ONE\r\n");
    else
        buf_printf(&line, "REPLICAOF %s %u\r\n", ip, SENTINEL_REDIS_PORT);
    buf_append_str(&line, "CLIENT KILL TYPE normal\r\nCLIENT KILL TYPE pubsub\r\n");
    sim_trace(sentinel->host->name, "redis%u is told to be %s", index + 1, is_master ? "the master" : "a replica");
    (void)sim_actor_send(watch->socket, line.ptr, line.len);
}

static void on_up(struct sim_socket *socket, void *arg)
{
    (void)socket;
    ((struct watch *)arg)->is_up = true;
}

static void on_lost(struct sim_socket *socket, void *arg)
{
    struct watch *watch = arg;

    (void)socket;
    watch->socket = NULL;
    close_watch(watch);
}

/* The value behind "name:"; empty: none. */
static struct text field(struct text info, const char *name)
{
    struct text line;
    const size_t len = strlen(name);

    while (text_next(&info, '\n', &line)) {
        if (line.len > 0 && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (text_starts_with(line, text_of(name)))
            return text_skip(line, len);
    }
    return (struct text){0};
}

static void read_info(struct watch *watch, struct text info)
{
    char ip[INET_ADDRSTRLEN] = "";
    const struct text host = field(info, "master_host:");

    watch->is_master = text_equal(field(info, "role:"), TEXT("master"));
    if (!text_to_u64(field(info, "master_repl_offset:"), UINT64_MAX, &watch->offset))
        watch->offset = 0;
    snprintf(ip, sizeof ip, "%.*s", TEXT_ARG(host));
    if (inet_pton(AF_INET, ip, &watch->follows) != 1)
        watch->follows.s_addr = 0;
}

static bool is_redis(const struct watch *watch)
{
    return watch->port == SENTINEL_REDIS_PORT;
}

/* "+down epoch leader": the other one's view, and its vote. */
static void read_answer(struct watch *watch, struct text line)
{
    struct sim_sentinel *sentinel = watch->sentinel;
    struct text word;
    uint64_t down, epoch, leader;

    if (!text_next(&line, ' ', &word) || !text_to_u64(text_skip(word, 1), 1, &down) || !text_next(&line, ' ', &word) ||
        !text_to_u64(word, UINT64_MAX, &epoch) || !text_to_u64(line, SENTINEL_NOBODY, &leader))
        return;
    watch->says_down = down == 1;
    watch->said_ns = sim_now_ns();
    if (sentinel->failover == ELECTION && epoch == sentinel->failover_epoch && leader == sentinel->number)
        sentinel->votes |= 1U << (unsigned)(watch - sentinel->sentinels);
}

/* One reply. Returns the bytes that it took; 0: it is not whole. */
static size_t take_reply(struct watch *watch)
{
    const char *end = watch->in.len > 0 ? memmem(watch->in.ptr, watch->in.len, "\r\n", 2) : NULL;
    struct text line = {watch->in.ptr, end ? (size_t)(end - watch->in.ptr) : 0};
    uint64_t bytes;

    if (!end)
        return 0;
    watch->heard_ns = sim_now_ns();
    if (line.ptr[0] == '$' && text_to_u64(text_skip(line, 1), SENTINEL_INPUT_BYTES, &bytes)) {
        if (watch->in.len < line.len + 2 + bytes + 2)
            return 0;
        watch->asked_ns = 0;
        read_info(watch, (struct text){line.ptr + line.len + 2, bytes});
        return line.len + 2 + bytes + 2;
    }
    if (!is_redis(watch)) {
        watch->asked_ns = 0;
        read_answer(watch, line);
    }
    return line.len + 2;
}

static void on_replies(struct sim_socket *socket, void *arg, const char *bytes, size_t length)
{
    struct watch *watch = arg;
    size_t taken;

    (void)socket;
    buf_append(&watch->in, bytes, length);
    while ((taken = take_reply(watch)) > 0)
        buf_consume(&watch->in, taken);
}

static const struct sim_actor WATCH = {.connected = on_up, .received = on_replies, .closed = on_lost};

/* Failovers */

static void enter(struct sim_sentinel *sentinel, enum failover failover)
{
    sentinel->failover = failover;
    sentinel->since_ns = sim_now_ns();
}

static unsigned count_down(const struct sim_sentinel *sentinel)
{
    unsigned count = 1;

    for (unsigned i = 0; i < SIM_SENTINELS; i++)
        count += i != sentinel->number && sentinel->sentinels[i].says_down && !is_down(&sentinel->sentinels[i]);
    return count;
}

static void stand_for_election(struct sim_sentinel *sentinel)
{
    sentinel->failover_epoch = sentinel->voted_epoch = ++sentinel->epoch;
    sentinel->voted_for = sentinel->number;
    sentinel->votes = 1U << sentinel->number;
    sentinel->again_ns = sim_now_ns() + (SENTINEL_AGAIN_MS + sim_draw_below(SENTINEL_DESYNC_MOST_MS)) * NS_PER_MS;
    enter(sentinel, ELECTION);
}

/* The one that has heard most; -1: none can be reached. */
static int find_heir(const struct sim_sentinel *sentinel)
{
    int best = -1;

    for (unsigned i = 0; i < SIM_WATCHED; i++) {
        const struct watch *watch = &sentinel->redises[i];

        if (i != sentinel->master && watch->is_up && !is_down(watch) && !watch->is_master &&
            (best < 0 || watch->offset > sentinel->redises[best].offset))
            best = (int)i;
    }
    return best;
}

static void promote(struct sim_sentinel *sentinel)
{
    const int heir = find_heir(sentinel);

    enter(sentinel, heir < 0 ? NONE : PROMOTION);
    if (heir < 0)
        return;
    sentinel->promoted = (unsigned)heir;
    become(sentinel, sentinel->promoted, true);
}

void sim_sentinel_failover(struct sim_sentinel *sentinel)
{
    if (sentinel->failover != NONE)
        return;
    stand_for_election(sentinel);
    promote(sentinel);
}

static void see_promotion(struct sim_sentinel *sentinel)
{
    if (sentinel->redises[sentinel->promoted].is_master) {
        sentinel_take_master(sentinel, sentinel->promoted, sentinel->failover_epoch);
        enter(sentinel, MOVES);
        for (unsigned i = 0; i < SIM_WATCHED; i++)
            if (i != sentinel->master)
                become(sentinel, i, false);
    } else if (is_older(sentinel->since_ns, FAILOVER_MS)) {
        enter(sentinel, NONE);
    }
}

static void go_on(struct sim_sentinel *sentinel)
{
    const bool is_wanted = sentinel_misses_master(sentinel) && count_down(sentinel) >= SENTINEL_QUORUM;

    switch (sentinel->failover) {
    case NONE:
        /* Whoever is too slow gets no votes, and if all stand at once, nobody does. */
        if (is_wanted && sim_now_ns() >= sentinel->again_ns && sim_draw_below(STANDS_ONE_IN) == 0)
            stand_for_election(sentinel);
        break;
    case ELECTION:
        if (__builtin_popcount(sentinel->votes) > SIM_SENTINELS / 2)
            promote(sentinel);
        else if (is_older(sentinel->since_ns, ELECTION_MS))
            enter(sentinel, NONE);
        break;
    case PROMOTION:
        see_promotion(sentinel);
        break;
    case MOVES:
        if (is_older(sentinel->since_ns, FAILOVER_MS))
            enter(sentinel, NONE);
        break;
    }
}

/* Of a Redis that answers and is not what it should be. Only while the master lives, who is one by its own word. */
static void mend(struct sim_sentinel *sentinel, unsigned index)
{
    struct watch *watch = &sentinel->redises[index];
    const struct watch *master = &sentinel->redises[sentinel->master];
    const bool is_sane = sentinel->failover == NONE && master->is_master && !is_down(master);
    const bool is_odd = watch == master ? !watch->is_master
                                        : is_sane && (watch->is_master || watch->follows.s_addr != master->ip.s_addr);

    if (!is_odd || is_down(watch))
        watch->odd_ns = 0;
    else if (watch->odd_ns == 0)
        watch->odd_ns = sim_now_ns();
    if (watch == master || watch->odd_ns == 0 || !is_older(watch->odd_ns, MEND_MS))
        return;
    watch->odd_ns = 0;
    become(sentinel, index, false);
}

/* Each tick */

/* What is not answered for long is asked again over another connection. */
static bool is_ready(struct watch *watch, const struct sim_actor *actor)
{
    if (watch->asked_ns > 0 && is_older(watch->asked_ns, DOWN_AFTER_MS / 2))
        close_watch(watch);
    if (!watch->socket) {
        watch->asked_ns = sim_now_ns();
        watch->socket = sim_actor_connect(watch->sentinel->host, watch->ip, watch->port, actor, watch);
        return false;
    }
    return watch->is_up;
}

static void ask(struct watch *watch, const char *line)
{
    if (!is_ready(watch, &WATCH))
        return;
    say(watch, line);
    if (watch->asked_ns == 0)
        watch->asked_ns = sim_now_ns();
}

static void ask_all(struct sim_sentinel *sentinel)
{
    struct buf line = BUF_FIXED(128);

    buf_printf(&line, "SIM %" PRIu64 " %" PRIu64 " %u %u\r\n", sentinel->epoch, sentinel->config_epoch,
               sentinel->master, sentinel->failover == ELECTION ? sentinel->number : SENTINEL_NOBODY);
    for (unsigned i = 0; i < SIM_WATCHED; i++)
        ask(&sentinel->redises[i], "INFO replication\r\n");
    for (unsigned i = 0; i < SIM_SENTINELS; i++)
        if (i != sentinel->number)
            ask(&sentinel->sentinels[i], line.ptr);
}

static void on_tick(struct sim_event *tick)
{
    struct sim_sentinel *sentinel = LIST_ENTRY(tick, struct sim_sentinel, tick);
    const bool is_calm = sentinel->failover == NONE && !sentinel_misses_master(sentinel);

    ask_all(sentinel);
    go_on(sentinel);
    for (unsigned i = 0; i < SIM_WATCHED; i++)
        mend(sentinel, i);
    sim_event_in(tick, sim_draw_between(is_calm ? ASK_EVERY_MS / 2 : TICK_MS / 2, is_calm ? ASK_EVERY_MS : TICK_MS) *
                           NS_PER_MS);
}

static void watch_begin(struct sim_sentinel *sentinel, struct watch *watch, const char *ip, uint16_t port)
{
    *watch = (struct watch){
        .sentinel = sentinel, .port = port, .in = BUF_UP_TO(SENTINEL_INPUT_BYTES), .heard_ns = sim_now_ns()};
    CHECK(inet_pton(AF_INET, ip, &watch->ip) == 1);
}

struct sim_sentinel *sim_sentinel_start(const struct sim_sentinel_plan *plan)
{
    struct sim_sentinel *sentinel = mem_alloc(sizeof *sentinel);

    *sentinel = (struct sim_sentinel){
        .host = plan->host, .number = plan->number, .switched = plan->switched, .arg = plan->arg, .tick.run = on_tick};
    sentinel->voted_for = SENTINEL_NOBODY;
    for (unsigned i = 0; i < SIM_WATCHED; i++)
        watch_begin(sentinel, &sentinel->redises[i], plan->redises[i], SENTINEL_REDIS_PORT);
    for (unsigned i = 0; i < SIM_SENTINELS; i++)
        watch_begin(sentinel, &sentinel->sentinels[i], plan->sentinels[i], SENTINEL_PORT);
    sentinel_listen(sentinel);
    sim_event_in(&sentinel->tick, 1);
    return sentinel;
}

/* bench_peers SOCKET PREFIX COUNT LEASE_MS: plays so many nodes at the Redis of that Unix socket. Each subscribes to
 * invalidations on one connection; on another it registers, sends heartbeats every quarter of a lease and acknowledges
 * what it hears. Prints "ready" once all are registered, and runs until it is killed. For scripts/bench. */
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PEERS_MAX = 5000, LEASE_LONGEST_MS = 10000, NAME_BYTES = 40, FILES_SPARE = 64, TURN_MS = 5 };
static const uint64_t NS_PER_MS = 1000000;

struct peer {
    char name[NAME_BYTES];
    redisContext *ears, *mouth;
    uint64_t heartbeats, next_ns;
};

static struct peer *peers;
static size_t count;
static const char *prefix;
static uint64_t lease_ms;

static redisContext *dial(const char *path)
{
    redisContext *redis = redisConnectUnix(path);

    while (redis && redis->err && errno == EAGAIN) { /* too many wait to be accepted */
        redisFree(redis);
        (void)poll(NULL, 0, TURN_MS);
        redis = redisConnectUnix(path);
    }
    if (!redis || redis->err) {
        fprintf(stderr, "bench_peers: %s\n", redis ? redis->errstr : "no memory");
        exit(EXIT_FAILURE);
    }
    return redis;
}

/* Writes what was appended. */
static void flush(redisContext *redis)
{
    int is_done = 0;

    while (!is_done)
        CHECK(redisBufferWrite(redis, &is_done) == REDIS_OK);
}

/* As node_heartbeat.lua does; the last word of the entry says that the node reads lists of keys. */
static void heartbeat(struct peer *peer, uint64_t now_ns)
{
    char entry[64];

    snprintf(entry, sizeof entry, "%" PRIu64 " %" PRIu64 " 2", ++peer->heartbeats, lease_ms);
    redisAppendCommand(peer->mouth, "HSET %snodes %s %s", prefix, peer->name, entry);
    redisAppendCommand(peer->mouth, "PUBLISH %snode:%s lease", prefix, peer->name);
    flush(peer->mouth);
    peer->next_ns = now_ns + lease_ms * NS_PER_MS / 4;
}

/* payload: "<digests> <revoker> <barrier>". */
static void acknowledge(struct peer *peer, char *payload)
{
    const char *revoker, *barrier;
    char message[128];

    strsep(&payload, " ");
    revoker = strsep(&payload, " ");
    barrier = strsep(&payload, " ");
    if (!barrier || strcmp(revoker, "-") == 0)
        return;
    snprintf(message, sizeof message, "ack %s %s", peer->name, barrier);
    redisAppendCommand(peer->mouth, "PUBLISH %snode:%s %s", prefix, revoker, message);
    flush(peer->mouth);
}

static void read_replies(struct peer *peer, redisContext *redis)
{
    redisReply *reply = NULL;

    CHECK(redisBufferRead(redis) == REDIS_OK);
    while (redisGetReplyFromReader(redis, (void **)&reply) == REDIS_OK && reply) {
        if (redis == peer->ears && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
            strcmp(reply->element[1]->str + strlen(prefix), "inv") == 0 && reply->element[2]->str)
            acknowledge(peer, reply->element[2]->str);
        freeReplyObject(reply);
    }
}

static void peer_begin(struct peer *peer, size_t n, const char *path)
{
    snprintf(peer->name, sizeof peer->name, "%016zx%016x", n + 1, 0xbe4c0u);
    peer->ears = dial(path);
    peer->mouth = dial(path);
    redisAppendCommand(peer->ears, "SUBSCRIBE %sinv %snode:%s", prefix, prefix, peer->name);
    flush(peer->ears);
    heartbeat(peer, clock_boot_ns());
}

static void run(struct pollfd *sockets)
{
    for (;;) {
        uint64_t now_ns;

        CHECK(poll(sockets, 2 * count, TURN_MS) >= 0);
        for (size_t i = 0; i < 2 * count; i++)
            if (sockets[i].revents)
                read_replies(&peers[i / 2], i % 2 ? peers[i / 2].mouth : peers[i / 2].ears);
        now_ns = clock_boot_ns();
        for (size_t i = 0; i < count; i++)
            if (now_ns >= peers[i].next_ns)
                heartbeat(&peers[i], now_ns);
    }
}

int main(int argc, char **argv)
{
    struct pollfd *sockets;
    uint64_t asked;

    if (argc != 5 || !text_to_u64(text_of(argv[3]), PEERS_MAX, &asked) ||
        !text_to_u64(text_of(argv[4]), LEASE_LONGEST_MS, &lease_ms) || lease_ms == 0) {
        fputs("usage: bench_peers SOCKET PREFIX COUNT LEASE_MS\n", stderr);
        return EXIT_FAILURE;
    }
    count = asked;
    prefix = argv[2];
    const struct rlimit files = {2 * count + FILES_SPARE, 2 * count + FILES_SPARE};
    (void)setrlimit(RLIMIT_NOFILE, &files);
    peers = mem_alloc((count + 1) * sizeof *peers);
    sockets = mem_alloc((2 * count + 1) * sizeof *sockets);
    for (size_t i = 0; i < count; i++) {
        peer_begin(&peers[i], i, argv[1]);
        sockets[2 * i] = (struct pollfd){peers[i].ears->fd, POLLIN, 0};
        sockets[2 * i + 1] = (struct pollfd){peers[i].mouth->fd, POLLIN, 0};
    }
    puts("ready");
    fflush(stdout);
    run(sockets);
}

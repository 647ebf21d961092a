/* What the files of a Sentinel share. */
#pragma once
#include "actor.h"
#include "base/list.h"
#include "base/text.h"
#include "schedule.h"
#include "sentinel.h"

enum {
    SENTINEL_PORT = 26379,
    SENTINEL_REDIS_PORT = 6379,
    SENTINEL_QUORUM = 2,
    SENTINEL_NOBODY = 99,
    SENTINEL_AGAIN_MS = 4000, /* after one failover, or a vote, until another try */
    SENTINEL_DESYNC_MOST_MS = 300,
    SENTINEL_INPUT_BYTES = 65536,
};

#define NS_PER_MS UINT64_C(1000000)

/* A connection that it made: to a Redis, or to another Sentinel. */
struct watch {
    struct sim_sentinel *sentinel;
    struct in_addr ip;
    uint16_t port;
    struct sim_socket *socket; /* NULL: none */
    bool is_up;
    struct buf in;
    uint64_t heard_ns, asked_ns; /* asked: what is not answered yet; 0: nothing */
    uint64_t odd_ns;             /* since when it has had another role than it should; 0: it has not */
    /* What it said last. Of a Redis: */
    bool is_master;
    uint64_t offset;
    struct in_addr follows;
    /* Of a Sentinel: */
    bool says_down;
    uint64_t said_ns;
};

enum failover { NONE, ELECTION, PROMOTION, MOVES };

struct sim_sentinel {
    struct sim_host *host;
    unsigned number, master;
    void (*switched)(void *arg, unsigned master, uint64_t epoch);
    void *arg;
    struct watch redises[SIM_WATCHED], sentinels[SIM_SENTINELS];
    struct list visitors;
    struct sim_event tick;
    uint64_t epoch, config_epoch, voted_epoch; /* epoch: the highest that it has heard of */
    unsigned voted_for, votes, promoted;       /* votes: a bit for each that gave it one */
    enum failover failover;
    uint64_t failover_epoch, since_ns, again_ns;
};

/* sentinel.c */
bool sentinel_misses_master(const struct sim_sentinel *sentinel);

/* sentinel_visits.c: who connects to it. Listens from now on. */
void sentinel_listen(struct sim_sentinel *sentinel);
/* By a configuration that is newer. Whoever listens is told. */
void sentinel_take_master(struct sim_sentinel *sentinel, unsigned master, uint64_t epoch);

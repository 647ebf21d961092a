/* The nodes and the Redis that are tortured, and what can be done to their processes. A part (a node, Redis) is locked
 * while something is done to it; the caller does that. */
#pragma once
#include "../integration/fixture.h"
#include "exchange.h"
#include "redis_proxy.h"
#include "sentinels.h"
#include <pthread.h>
#include <stdatomic.h>

enum { CLUSTER_NODES = 3, CLUSTER_INCARNATIONS_MAX = 1 << 14, CLUSTER_ACCOUNTS_MAX = 16, CLUSTER_ARGS_MAX = 12 };

struct netns;
struct shards;

/* An account in which keys are made and revoked. */
struct cluster_account {
    struct fixture_key manager;
    struct fixture_user user;
};

struct cluster {
    struct fixture fixture;
    struct redis_proxy *proxy;     /* in front of Redis, a port for each node; with Sentinels one port for everybody, in
                                      front of the first Redis alone */
    struct redis_server elsewhere; /* where a node's address may lead for a while; none with Sentinels (port 0) */
    struct sentinels sentinels;    /* redis_count 0: none */
    struct netns *netns;           /* NULL without namespaces */
    struct shards *shards;         /* the Redis Cluster; NULL: none */
    unsigned min_replicas;         /* 0 without Sentinels */
    struct cluster_account accounts[CLUSTER_ACCOUNTS_MAX]; /* in a Redis Cluster, one in each partition */
    unsigned account_count;
    const char *args[CLUSTER_ARGS_MAX + 1];
    bool has_tables;                                /* set it before the start: each node shares its cache */
    char tables[CLUSTER_NODES][PROCESS_PATH_BYTES]; /* the sockets at which they do */
    char lease_ms[16];
    char urls[CLUSTER_NODES][PROCESS_PATH_BYTES];
    /* What each node is, or will be when it is started again; NULL: node_binary(). Written before the clients start,
     * and by the thread that starts nodes. */
    const char *programs[CLUSTER_NODES];
    const char *command_programs[2]; /* of commands, in turn; NULL: node_binary() */
    pthread_mutex_t node_locks[CLUSTER_NODES], redis_lock;
    /* Read by clients at any time; 0 while a node is away. */
    atomic_uint ports[CLUSTER_NODES], internal_ports[CLUSTER_NODES];
    atomic_uint incarnations[CLUSTER_NODES];
    _Atomic int64_t ended_ms[CLUSTER_NODES][CLUSTER_INCARNATIONS_MAX]; /* by kill or drain; 0: not */
    /* While a fault sets it, clients begin nothing but checks and revocations at nodes. */
    atomic_bool only_revocations;
    atomic_uint others_open; /* everything else that clients have begun and that has not ended */
};

/* Redis, account, manager key and the nodes, each reaching Redis through the proxy. */
void cluster_start(struct cluster *cluster, unsigned lease_ms, struct netns *netns);
/* The same with two replicas and three Sentinels, by which the nodes and all commands find the master; the first node
 * knows of the first Sentinel alone. */
void cluster_start_replicated(struct cluster *cluster, unsigned lease_ms, unsigned min_replicas);
/* The same with that Redis Cluster, which is started here, behind no proxy, and an account in each partition. In
 * namespaces, the nodes have the first ones. */
void cluster_start_sharded(struct cluster *cluster, unsigned lease_ms, struct shards *shards, struct netns *netns);
/* Drains the nodes, which must end cleanly, and stops all. */
void cluster_stop(struct cluster *cluster);

const char *cluster_program(const struct cluster *cluster, unsigned node);
void cluster_node_start(struct cluster *cluster, unsigned node);
void cluster_node_kill(struct cluster *cluster, unsigned node);
void cluster_node_drain(struct cluster *cluster, unsigned node);
/* The number of a node's present life, and when a life was ended from outside (deadline_now_ms(); 0: never): what it
 * had begun may be unfinished. */
unsigned cluster_incarnation(struct cluster *cluster, unsigned node);
int64_t cluster_ended_ms(struct cluster *cluster, unsigned node, unsigned incarnation);
/* A node that ended though nobody ended it; CLUSTER_NODES: none. */
unsigned cluster_find_dead(struct cluster *cluster);

/* Something else than checks and revocations is about to begin; false: it must not. Once it has ended: the other. */
bool cluster_other_begins(struct cluster *cluster);
void cluster_other_ends(struct cluster *cluster);

/* An exchange_socket; arg: the cluster. */
int cluster_open_socket(void *cluster, unsigned node, uint16_t *ret_port);
/* fixture_call() and fixture_login() where the node may be in a namespace of its own; the node must be up. */
int cluster_call(struct cluster *cluster, unsigned node, const struct http_call *call, struct http_answer *ret_answer);
/* As fixture_metric(). */
long cluster_metric(struct cluster *cluster, unsigned node, const char *line_start);
int cluster_login(struct cluster *cluster, unsigned node, const struct fixture_user *user,
                  struct fixture_session *ret_session, struct http_answer *ret_answer);

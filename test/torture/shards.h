/* The Redis Cluster that is tortured: three primaries with a replica each, set up as docker/redis/CLUSTER.md asks.
 * Whoever serves a third of the slots is a shard's primary, and the slot of one name, which is never moved, tells who
 * that is: replicas change shards by themselves, when one has two and another none. */
#pragma once
#include "redis_cluster.h"
#include <pthread.h>
#include <stdatomic.h>

enum { SHARDS = CLUSTER_PRIMARIES_MAX, SHARDS_SERVERS = 2 * SHARDS, SHARDS_PARTITIONS = 16, SHARDS_NONE = -1 };

struct netns;

struct shards {
    struct cluster_servers servers;
    struct netns *netns;                        /* NULL: all are at 127.0.0.1 */
    unsigned first_namespace;                   /* that of server 0 */
    char ids[SHARDS_SERVERS][48];               /* as the cluster names them */
    char slots[SHARDS_PARTITIONS][8];           /* of the partitions */
    char names[SHARDS][16], anchors[SHARDS][8]; /* a name of each shard whose slot is never moved, and that slot */
    atomic_uint homes[SHARDS_PARTITIONS];       /* the shard that has the slot, as whoever moves slots knows */
    atomic_int disturbed;                       /* the shard that a fault has in its hands; SHARDS_NONE */
    atomic_int moving;                          /* the partition that is being moved; SHARDS_NONE */
    atomic_uint ends[SHARDS_PARTITIONS]; /* of its moves: bits of shards, until the fault that looks clears them */
    atomic_bool away[SHARDS_SERVERS];    /* it would not answer */
    pthread_mutex_t move_lock;           /* while a slot is being moved, or none may be */
};

/* What a server says of itself and a slot. */
struct shard_view {
    bool is_primary, has_slot;
    long long epoch; /* of its configuration */
};

/* netns: NULL, or a bridged network with a namespace for each server, from first_namespace on. */
void shards_start(struct shards *shards, struct netns *netns, unsigned first_namespace);
void shards_stop(struct shards *shards);

/* False: it does not answer. */
bool shards_view(const struct shards *shards, unsigned server, const char *slot, struct shard_view *ret_view);
/* The server that is the shard's primary, by its own word; false: none answers that it is. */
bool shards_primary(const struct shards *shards, unsigned shard, unsigned *ret_server);
/* Whether a fault or a move may keep the partition from being served now. */
bool shards_excuse(const struct shards *shards, unsigned partition);

void shards_kill(struct shards *shards, unsigned server);
void shards_restart(struct shards *shards, unsigned server);
/* Copies its data as they are; and puts the copy back, and starts it, after a kill. */
void shards_keep(struct shards *shards, unsigned server);
void shards_put_back(struct shards *shards, unsigned server);
/* Makes the replica its shard's primary, though no other server agrees. */
void shards_take_over(struct shards *shards, unsigned server);
void shards_set_frozen(struct shards *shards, unsigned server, bool is_frozen);
/* In namespaces: it reaches no other server, and of the nodes only the first `reached`. */
void shards_set_cut(const struct shards *shards, unsigned server, unsigned nodes_reached, bool is_cut);

/* What a member knows of its cluster: cluster.c has who owns which slot, and whether a command may run here;
 * cluster_bus.c what members tell each other; cluster_nodes.c how it is printed and read; cmd_cluster.c the commands.
 */
#pragma once
#include "internal.h"
#include "simredis_cluster.h"

enum { SLOTS = 16384, MEMBERS_MAX = 16, MEMBER_ID_CHARS = 40, NOBODY = UINT8_MAX, MYSELF = 0, NO_SLOT = -1 };

struct member {
    char id[MEMBER_ID_CHARS + 1], host[64];
    uint16_t port, bus_port;
    uint64_t epoch;
    uint64_t heard_us;                /* when it last answered */
    uint64_t doubted_us[MEMBERS_MAX]; /* when that member last said that this one does not answer; 0: never */
    uint64_t failed_us;               /* since when most say so; 0: they do not */
};

struct cluster {
    struct simredis_bus bus;
    struct member members[MEMBERS_MAX]; /* the first is this server */
    size_t count;
    uint64_t epoch; /* the highest that anybody has */
    /* Places in members, or NOBODY: who owns a slot, to whom it goes, from whom it comes. */
    uint8_t owner[SLOTS], to[SLOTS], from[SLOTS];
    bool is_up;
    uint64_t began_us, minority_us; /* minority: when it last knew that it was among the fewer */
    uint64_t next_us, next_ping_us;
    int slot; /* of the keys of the script that runs; NO_SLOT: it has none yet */
};

/* cluster.c */
bool cluster_owns_slots(const struct cluster *cluster, size_t place);
/* A place, or NOBODY. */
uint8_t cluster_place_of(const struct cluster *cluster, struct text id);
size_t cluster_keys_in(const struct simredis *server, unsigned slot, size_t most, struct text *ret_keys);
void cluster_delete_keys(struct simredis *server, unsigned slot);
/* Whoever hears shard channels of the slot here is told that it hears them no more. */
void cluster_give(struct simredis *server, unsigned slot, uint8_t place);
/* That it was not heard within cluster-node-timeout. */
bool cluster_doubts(const struct simredis *server, size_t place);
uint64_t cluster_timeout_us(const struct simredis *server);
/* Whether it is up. */
void cluster_judge_itself(struct simredis *server);

/* cluster_bus.c */
void cluster_tell_all(struct simredis *server);

/* cluster_nodes.c */
/* "0-99 102". */
void cluster_print_slots(const struct cluster *cluster, uint8_t place, struct buf *out);
/* Calls it for each of these; moves among them are skipped. False: they are not that. */
bool cluster_read_slots(struct text words, void (*slot)(void *arg, unsigned slot), void *arg);
/* Each line as CLUSTER NODES has it. */
void cluster_print(const struct simredis *server, struct buf *out);

/* The cache of this node, shared with gateways and backends on its machine, which then decide for themselves
 * (chatelaine/check.h, the reader; src/auth/README.md#the-shared-table, the rules). The owner puts only what its cache
 * holds and may answer, and removes it before it acknowledges that it is gone. Loop thread only. */
#pragma once
#include "core/key.h"

struct shared_table;

struct shared_table_settings {
    size_t keys_max;
    unsigned partitions;
    const char *deployment; /* for readers that ask for one; shorter than CHATELAINE_DEPLOYMENT_BYTES */
    /* A reader has accepted the key so often since it was asked last. */
    void (*used)(void *arg, const struct key_principal *key, uint32_t uses);
    /* So has that owner's key, which is still in the table. */
    void (*in_use)(void *arg, uint32_t owner);
    /* Whether the uses of one more key can be counted now. */
    bool (*has_room)(void *arg);
    void *arg;
};

/* NULL: errno says why there is no memory. */
struct shared_table *shared_table_create(const struct shared_table_settings *settings);
/* Readers keep their memory, but no entry of it is valid. Their counts since the last shared_table_count_uses() are
 * lost. */
void shared_table_destroy(struct shared_table *table);

/* Memory for readers: they cannot shrink either, or write to the table. */
void shared_table_fds(const struct shared_table *table, int *ret_table, int *ret_uses);

/* For readers that have scopes from elsewhere: a number that changes with the route policy; not 0. Call it before the
 * policy takes effect. */
void shared_table_set_policy(struct shared_table *table, uint32_t policy);

/* Until when entries of a partition may be used, by clock_boot_ns(). Remove what was heard to be revoked first. */
void shared_table_set_lease(struct shared_table *table, unsigned partition, uint64_t until_ns);
/* There is no lease any more, and no entry of that partition. */
void shared_table_withdraw(struct shared_table *table, unsigned partition);

/* owner: a number by which the caller knows the key. Returns its slot. The slot's earlier key may lose its place: see
 * shared_table_holds(). SHARED_TABLE_NONE: a secret of such a length is not shared. */
enum { SHARED_TABLE_NONE = UINT32_MAX };
uint32_t shared_table_put(struct shared_table *table, uint32_t owner, struct text secret, unsigned bucket,
                          const struct key_packed *key);
/* Whether the slot still has that owner's key, and readers may use it. */
bool shared_table_holds(const struct shared_table *table, uint32_t slot, uint32_t owner);
/* Unless the slot has another owner's key by now. */
void shared_table_remove(struct shared_table *table, uint32_t slot, uint32_t owner);
/* Removes all keys of a bucket, and so of an account. */
void shared_table_clear_bucket(struct shared_table *table, unsigned bucket);

/* Reports uses of at most so many slots, going round. Each use is reported exactly once, here or when its key is
 * removed. Returns false if it stopped because there was no room. */
bool shared_table_count_uses(struct shared_table *table, size_t slots);
size_t shared_table_slots(const struct shared_table *table);
/* Keys with a slot: also those of a cleared bucket, until their slots are taken. */
size_t shared_table_keys(const struct shared_table *table);

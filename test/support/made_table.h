/* A shared table of keys (chatelaine/check.h) made by hand, as a node would fill it, for tests of its readers. */
#pragma once
#include "chatelaine/check.h"

#define MADE_TABLE_DEPLOYMENT "dep_made"

enum {
    MADE_TABLE_ULID_BYTES = 16,
    MADE_TABLE_PARTITIONS = 4,
    MADE_TABLE_EPOCH = 7, /* of each bucket */
};

struct made_table {
    struct chatelaine_table_header *header;
    struct chatelaine_set *sets;
    struct chatelaine_uses_header *uses_header;
    chatelaine_uses *uses;
    size_t table_bytes, uses_bytes;
    int fds[2]; /* table, uses; -1: in ordinary memory */
};

struct made_key {
    const char *secret; /* NUL-terminated */
    uint32_t scopes;
    uint8_t bucket;
    bool is_device, is_live;
    uint8_t account[MADE_TABLE_ULID_BYTES], principal[MADE_TABLE_ULID_BYTES];
};

/* Without keys; all leases last for a day. In ordinary memory, where a sanitizer sees what is read beyond the end. */
void made_table_in_memory(struct made_table *made, uint32_t set_count);
/* The same in two memfds, sealed against shrinking and growing. */
void made_table_in_memfds(struct made_table *made, uint32_t set_count);
void made_table_finish(struct made_table *made);

/* Lets a reader use it directly, without a node. */
void made_table_lend(const struct made_table *made, struct chatelaine_table *ret_reader);

/* The key's slot in the set of its hash's first (0) or second (1) word. */
uint32_t made_table_slot(const struct made_table *made, const char *secret, int which, uint32_t way);
/* Replaces what is in the slot; readers may read meanwhile. Returns how many uses of the former key were not
 * collected. */
uint32_t made_table_put(struct made_table *made, uint32_t slot, const struct made_key *key);
uint32_t made_table_generation(const struct made_table *made, uint32_t slot);
/* Uses of the key in the slot. */
uint32_t made_table_uses(const struct made_table *made, uint32_t slot);
void made_table_set_leases(struct made_table *made, uint64_t until_ns);

/* Shared by key_check.c (cache lookups) and key_read.c (store reads). */
#pragma once
#include "auth/key_check.h"
#include "base/callback.h"
#include "base/log.h"
#include "key_cache_internal.h"

enum { KEY_READ_LISTS = 1024 };

/* The lease at one moment, under which the node knows the suspended accounts. It decides checks that began before,
 * whatever happens next, and none that begins later. */
struct checker_lease {
    bool is_held;
    uint64_t now_ns;
};

/* One partition of the store. Its keys in the cache are used only under its lease, and dropped when its membership
 * ends. */
struct checker_part {
    struct key_checker *checker;
    struct store *store;
    struct membership *member; /* NULL: no cache */
    unsigned number;
    struct checker_lease lease;
    uint64_t look; /* in which the lease was looked at */
};

struct key_checker {
    struct keyring *keyring;
    const struct usage *usage;
    struct key_cache *cache;    /* of all partitions; NULL: every check reads the store */
    struct shared_table *table; /* NULL: none */
    uint64_t look;              /* the present one; each partition's lease is looked at once in it, if it is needed */
    struct list waiting;        /* struct key_check, for the next slice */
    size_t waiting_count;
    struct turn_part part;
    struct log_pause altered_pause;
    struct list reads[KEY_READ_LISTS]; /* struct key_read, by digest */
    unsigned refreshes;                /* those of them that refresh a key */
    struct callback stopped;           /* when there are none any more; NULL: not stopping */
    unsigned part_count;               /* a power of two */
    struct checker_part parts[];
};

static inline struct checker_part *part_of(struct key_checker *checker, unsigned bucket)
{
    return &checker->parts[bucket & (checker->part_count - 1)];
}

/* In key_check.c. A secret's prefix gives its kind and mode, and no two secrets share a digest. So a record that says
 * otherwise was altered, and its key is refused like an unknown one: STORE_NOT_FOUND. Cached keys were compared when
 * they were read. */
enum store_result key_check_compare(struct key_checker *checker, enum key_kind kind, enum key_mode mode,
                                    enum store_result result, const struct key_principal *key);
/* Says so if this is the first time that a key which replaces another one is accepted. */
void key_check_confirm(struct key_checker *checker, enum store_result result, const struct key_principal *key);
/* The verdict of what the store says; KEY_UNDECIDED if it did not answer. */
enum key_verdict key_check_verdict(enum store_result result, const struct key_principal *key);
/* Goes on with what a read says: completes the check, or tries an older master key. */
void key_check_found(struct key_check *check, enum store_result result, const struct key_principal *key);

/* Shares a key that was just read into the cache, on the same conditions as a check that begins now. Without this,
 * readers would ask twice for each key. Counts as a use of the cache's entry. */
void key_check_share(struct key_check *check);

/* In key_read.c. Reads the store for a check, whose token is well-formed and whose digest is made, or lets it join a
 * read that is under way; key_check_found() goes on, later. Needs a cache. */
void key_read_for(struct key_check *check);
/* Reads keys again that readers of the shared table use and that the cache would soon drop by age: a few at a time, and
 * the next ones when these are answered. Needs a table. */
void key_read_refresh(struct key_checker *checker);

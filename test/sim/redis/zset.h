/* A sorted set: by score, then by member. */
#pragma once
#include "dict.h"

struct zset {
    struct dict members;
    struct dict_entry **order;
    size_t room;
};

/* One end of a range by score or by member. */
struct zset_bound {
    double score;
    struct text member;
    bool is_exclusive;
    int infinity; /* of members: -1 "-", 1 "+" */
};

void zset_finish(struct zset *zset);
static inline size_t zset_count(const struct zset *zset)
{
    return zset->members.count;
}
/* Returns whether it is new. */
bool zset_set(struct zset *zset, struct text member, double score);
bool zset_remove(struct zset *zset, struct text member);
size_t zset_rank(const struct zset *zset, const struct dict_entry *entry);
void zset_remove_ranks(struct zset *zset, size_t first, size_t count);
/* How many are before the range's begin (is_end false), or not behind its end. */
size_t zset_place_by_score(const struct zset *zset, const struct zset_bound *bound, bool is_end);
/* The ranks from *ret_begin to below *ret_end. */
void zset_places_by_member(const struct zset *zset, const struct zset_bound *low, const struct zset_bound *high,
                           bool is_reverse, size_t *ret_begin, size_t *ret_end);

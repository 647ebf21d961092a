/* A hash table whose order is that of insertion, so that nothing hangs on an address or a seed. Each entry has a number
 * that grows: a walk in many steps (SCAN) goes on by it, and misses nothing that is there all the time. */
#pragma once
#include "base/text.h"

struct dict_entry {
    struct text key;  /* its own copy */
    struct text text; /* of hashes: its own copy */
    void *object;     /* of the key space: the value, which the user frees */
    double score;     /* of sorted sets */
    uint64_t number;  /* of its insertion, from 1 */
    uint32_t hash;
    size_t place; /* in entries */
};

struct dict {
    struct dict_entry **entries; /* in their order; NULL: removed */
    uint32_t *slots;             /* place + 1; 0: empty; UINT32_MAX: removed */
    size_t count, used, room, slot_count;
    uint64_t last_number;
};

/* A copy with a NUL behind it, which text_release() frees. */
struct text text_own(struct text text);
void text_release(struct text text);

/* Zeroed, a dict is empty. */
void dict_finish(struct dict *dict);
/* Adds what `from` has, without its objects. */
void dict_copy(struct dict *to, const struct dict *from);
/* NULL: there is none. */
struct dict_entry *dict_find(const struct dict *dict, struct text key);
/* Finds it or adds it. The address stays as long as the entry. */
struct dict_entry *dict_add(struct dict *dict, struct text key, bool *ret_is_new);
void dict_remove(struct dict *dict, struct dict_entry *entry);
void dict_set_text(struct dict_entry *entry, struct text text);
/* The entry at *place or behind it, and *place behind that; NULL: none. Begin with 0. Entries may be removed meanwhile,
 * none added. */
struct dict_entry *dict_next(const struct dict *dict, size_t *place);
/* The place of the first entry with that number or a higher one. */
size_t dict_place_of(const struct dict *dict, uint64_t number);
/* The index-th entry in the order, below count. */
struct dict_entry *dict_at(const struct dict *dict, size_t index);

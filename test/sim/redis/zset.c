#include "zset.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

static int compare_texts(struct text a, struct text b)
{
    int order = a.len && b.len ? memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len) : 0;

    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static bool is_before(const struct dict_entry *entry, double score, struct text member)
{
    return entry->score < score || (entry->score == score && compare_texts(entry->key, member) < 0);
}

void zset_finish(struct zset *zset)
{
    dict_finish(&zset->members);
    free(zset->order);
    *zset = (struct zset){0};
}

/* How many are before that place, among the first `count`. */
static size_t place_of(const struct zset *zset, size_t count, double score, struct text member)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (is_before(zset->order[middle], score, member))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t zset_rank(const struct zset *zset, const struct dict_entry *entry)
{
    return place_of(zset, zset_count(zset), entry->score, entry->key);
}

static void take_out(struct zset *zset, size_t rank, size_t count)
{
    memmove(zset->order + rank, zset->order + rank + 1, (count - rank - 1) * sizeof *zset->order);
}

bool zset_set(struct zset *zset, struct text member, double score)
{
    score = score == 0 ? 0 : score; /* "-0" is not kept */
    size_t before = zset_count(zset), rank;
    bool is_new;
    struct dict_entry *entry = dict_add(&zset->members, member, &is_new);

    if (!is_new && entry->score == score)
        return false;
    if (!is_new) {
        take_out(zset, place_of(zset, before, entry->score, entry->key), before);
        before--;
    }
    zset->order = mem_grow(zset->order, before, &zset->room, sizeof *zset->order);
    rank = place_of(zset, before, score, member);
    memmove(zset->order + rank + 1, zset->order + rank, (before - rank) * sizeof *zset->order);
    zset->order[rank] = entry;
    entry->score = score;
    return is_new;
}

bool zset_remove(struct zset *zset, struct text member)
{
    struct dict_entry *entry = dict_find(&zset->members, member);

    if (!entry)
        return false;
    take_out(zset, zset_rank(zset, entry), zset_count(zset));
    dict_remove(&zset->members, entry);
    return true;
}

void zset_remove_ranks(struct zset *zset, size_t first, size_t count)
{
    size_t all = zset_count(zset);

    for (size_t i = first; i < first + count; i++)
        dict_remove(&zset->members, zset->order[i]);
    memmove(zset->order + first, zset->order + first + count, (all - first - count) * sizeof *zset->order);
}

static bool lies_before(const struct dict_entry *entry, const struct zset_bound *bound, bool by_member, bool with_equal)
{
    int order;

    if (by_member && bound->infinity)
        return bound->infinity > 0;
    order = by_member ? compare_texts(entry->key, bound->member)
                      : (entry->score > bound->score) - (entry->score < bound->score);
    return order < 0 || (order == 0 && with_equal);
}

static size_t place_by(const struct zset *zset, const struct zset_bound *bound, bool by_member, bool is_end)
{
    bool with_equal = is_end ? !bound->is_exclusive : bound->is_exclusive;
    size_t low = 0, high = zset_count(zset);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (lies_before(zset->order[middle], bound, by_member, with_equal))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t zset_place_by_score(const struct zset *zset, const struct zset_bound *bound, bool is_end)
{
    return place_by(zset, bound, false, is_end);
}

static bool is_low_enough(const struct dict_entry *entry, const struct zset_bound *high)
{
    return lies_before(entry, high, true, !high->is_exclusive);
}

static bool is_high_enough(const struct dict_entry *entry, const struct zset_bound *low)
{
    return !lies_before(entry, low, true, low->is_exclusive);
}

/* Where members are in no order, because their scores differ: as Redis walks, from the first that fits one end until
 * one does not fit the other. */
static void walk_members(const struct zset *zset, const struct zset_bound *low, const struct zset_bound *high,
                         bool is_reverse, size_t *ret_begin, size_t *ret_end)
{
    size_t count = zset_count(zset), begin = 0, end = count;

    if (!is_high_enough(zset->order[count - 1], low) || !is_low_enough(zset->order[0], high)) {
        *ret_begin = *ret_end = 0;
        return;
    }
    if (is_reverse) {
        while (end > 0 && !is_low_enough(zset->order[end - 1], high))
            end--;
        for (begin = end; begin > 0 && is_high_enough(zset->order[begin - 1], low);)
            begin--;
    } else {
        while (begin < count && !is_high_enough(zset->order[begin], low))
            begin++;
        for (end = begin; end < count && is_low_enough(zset->order[end], high);)
            end++;
    }
    *ret_begin = begin;
    *ret_end = end;
}

void zset_places_by_member(const struct zset *zset, const struct zset_bound *low, const struct zset_bound *high,
                           bool is_reverse, size_t *ret_begin, size_t *ret_end)
{
    size_t count = zset_count(zset);

    if (count > 0 && zset->order[0]->score != zset->order[count - 1]->score) {
        walk_members(zset, low, high, is_reverse, ret_begin, ret_end);
        return;
    }
    *ret_begin = place_by(zset, low, true, false);
    *ret_end = place_by(zset, high, true, true);
    if (*ret_end < *ret_begin)
        *ret_end = *ret_begin;
}

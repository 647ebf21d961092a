/* Ranges of sorted sets. */
#include "commands.h"
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum by { BY_ANY, BY_RANK, BY_SCORE, BY_MEMBER };

struct range {
    enum by by;
    bool is_reverse, with_scores, is_limited;
    int64_t first, last; /* ranks; from the end if below 0 */
    struct zset_bound low, high;
    int64_t offset, count; /* LIMIT */
};

static bool read_score(struct text text, struct zset_bound *bound)
{
    char storage[NUMBER_BYTES], *end;

    bound->is_exclusive = text.len > 0 && text.ptr[0] == '(';
    text = text_skip(text, bound->is_exclusive);
    if (text.len >= sizeof storage)
        return false;
    memcpy(storage, text.len > 0 ? text.ptr : "", text.len);
    storage[text.len] = '\0';
    bound->score = strtod(storage, &end);
    return *end == '\0' && !isnan(bound->score);
}

static bool read_member(struct text text, struct zset_bound *bound)
{
    if (text_equal(text, TEXT("-")) || text_equal(text, TEXT("+"))) {
        bound->infinity = text.ptr[0] == '+' ? 1 : -1;
        return true;
    }
    if (text.len == 0 || (text.ptr[0] != '(' && text.ptr[0] != '['))
        return false;
    bound->is_exclusive = text.ptr[0] == '(';
    bound->member = text_skip(text, 1);
    return true;
}

static bool read_ranks(struct call *call, size_t index, struct range *range)
{
    return arg_i64(call, index, &range->first) && arg_i64(call, index + 1, &range->last);
}

static bool read_bounds(struct call *call, size_t index, struct range *range)
{
    bool is_swapped = range->is_reverse && range->by != BY_RANK;
    struct text low = call->argv[index + is_swapped], high = call->argv[index + !is_swapped];

    if (range->by == BY_RANK)
        return read_ranks(call, index, range);
    if (range->by == BY_SCORE) {
        if (read_score(low, &range->low) && read_score(high, &range->high))
            return true;
        say_error(call, "ERR min or max is not a float");
        return false;
    }
    if (read_member(low, &range->low) && read_member(high, &range->high))
        return true;
    say_error(call, "ERR min or max not valid string range item");
    return false;
}

/* is_any: ZRANGE, whose options say what range it is. */
static bool read_options(struct call *call, bool is_any, struct range *range)
{
    for (size_t i = 4; i < call->argc; i++) {
        if (arg_is(call, i, "WITHSCORES"))
            range->with_scores = true;
        else if (arg_is(call, i, "LIMIT") && i + 2 < call->argc) {
            if (!arg_i64(call, i + 1, &range->offset) || !arg_i64(call, i + 2, &range->count))
                return false;
            range->is_limited = true;
            i += 2;
        } else if (is_any && arg_is(call, i, "REV"))
            range->is_reverse = true;
        else if (range->by == BY_ANY && arg_is(call, i, "BYLEX"))
            range->by = BY_MEMBER;
        else if (range->by == BY_ANY && arg_is(call, i, "BYSCORE"))
            range->by = BY_SCORE;
        else {
            say_syntax(call);
            return false;
        }
    }
    if (range->by == BY_ANY)
        range->by = BY_RANK;
    return true;
}

static bool options_fit(struct call *call, const struct range *range)
{
    if (range->is_limited && range->count != -1 && range->by == BY_RANK)
        say_error(call, "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
    else if (range->with_scores && range->by == BY_MEMBER)
        say_error(call, "ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    else
        return true;
    return false;
}

/* The ranks of a range, the end exclusive. */
static void find_ranks(const struct zset *zset, const struct range *range, size_t *ret_begin, size_t *ret_end)
{
    int64_t count = (int64_t)zset_count(zset), first = range->first, last = range->last;

    if (range->by == BY_SCORE) {
        *ret_begin = zset_place_by_score(zset, &range->low, false);
        *ret_end = zset_place_by_score(zset, &range->high, true);
    } else if (range->by == BY_MEMBER) {
        zset_places_by_member(zset, &range->low, &range->high, range->is_reverse, ret_begin, ret_end);
    } else {
        first = first < 0 ? (first + count < 0 ? 0 : first + count) : first;
        last = last < 0 ? last + count : last >= count ? count - 1 : last;
        *ret_begin = first > last || first >= count ? 0 : (size_t)first;
        *ret_end = first > last || first >= count ? 0 : (size_t)last + 1;
        if (range->is_reverse && *ret_end > 0) {
            size_t begin = (size_t)count - *ret_end;
            *ret_end = (size_t)count - *ret_begin;
            *ret_begin = begin;
        }
    }
    if (*ret_end < *ret_begin)
        *ret_end = *ret_begin;
}

static void cut_to_limit(const struct range *range, size_t *begin, size_t *end)
{
    size_t all = *end - *begin;
    size_t skipped = range->offset < 0 || (uint64_t)range->offset > all ? all : (size_t)range->offset;
    size_t count = range->count < 0 || (uint64_t)range->count > all - skipped ? all - skipped : (size_t)range->count;

    if (range->is_reverse) {
        *end -= skipped;
        *begin = *end - count;
    } else {
        *begin += skipped;
        *end = *begin + count;
    }
}

static void say_range(struct call *call, const struct zset *zset, const struct range *range)
{
    size_t begin, end;

    find_ranks(zset, range, &begin, &end);
    if (range->is_limited)
        cut_to_limit(range, &begin, &end);
    say_array(call, (end - begin) * (range->with_scores ? 2 : 1));
    for (size_t i = 0; i < end - begin; i++) {
        const struct dict_entry *entry = zset->order[range->is_reverse ? end - 1 - i : begin + i];

        say_text(call, entry->key);
        if (range->with_scores)
            say_double(call, entry->score);
    }
}

static void run_range(struct call *call, enum by by, bool is_reverse)
{
    struct range range = {.by = by, .is_reverse = is_reverse, .count = -1};
    struct value *value;

    if (!read_options(call, by == BY_ANY, &range) || !options_fit(call, &range) || !read_bounds(call, 2, &range) ||
        !space_read(call, call->argv[1], VALUE_ZSET, &value))
        return;
    if (value)
        say_range(call, &value->zset, &range);
    else
        say_array(call, 0);
}

void cmd_zrange(struct call *call)
{
    run_range(call, BY_ANY, false);
}

void cmd_zrevrange(struct call *call)
{
    run_range(call, BY_RANK, true);
}

void cmd_zrangebyscore(struct call *call)
{
    run_range(call, BY_SCORE, false);
}

void cmd_zrevrangebyscore(struct call *call)
{
    run_range(call, BY_SCORE, true);
}

void cmd_zrangebylex(struct call *call)
{
    run_range(call, BY_MEMBER, false);
}

void cmd_zrevrangebylex(struct call *call)
{
    run_range(call, BY_MEMBER, true);
}

static void count_or_remove(struct call *call, enum by by, bool removes)
{
    struct range range = {.by = by};
    struct value *value;
    size_t begin, end;

    if (!read_bounds(call, 2, &range) || !space_read(call, call->argv[1], VALUE_ZSET, &value))
        return;
    if (!value) {
        say_integer(call, 0);
        return;
    }
    find_ranks(&value->zset, &range, &begin, &end);
    if (removes) {
        zset_remove_ranks(&value->zset, begin, end - begin);
        space_prune(call, call->argv[1], value);
    }
    say_integer(call, (int64_t)(end - begin));
}

void cmd_zcount(struct call *call)
{
    count_or_remove(call, BY_SCORE, false);
}

void cmd_zlexcount(struct call *call)
{
    count_or_remove(call, BY_MEMBER, false);
}

void cmd_zremrangebyscore(struct call *call)
{
    count_or_remove(call, BY_SCORE, true);
}

void cmd_zremrangebylex(struct call *call)
{
    count_or_remove(call, BY_MEMBER, true);
}

void cmd_zremrangebyrank(struct call *call)
{
    count_or_remove(call, BY_RANK, true);
}

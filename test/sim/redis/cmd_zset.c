#include "commands.h"
#include "internal.h"

#include <math.h>
#include <stdlib.h>

static bool read_zset(struct call *call, struct value **ret_value)
{
    return space_read(call, call->argv[1], VALUE_ZSET, ret_value);
}

static struct dict_entry *member_of(const struct value *value, struct text member)
{
    return value ? dict_find(&value->zset.members, member) : NULL;
}

struct add_options {
    bool only_new, only_old, only_greater, only_less, counts_changes, is_increment;
    size_t first; /* argument behind the options */
};

static void read_options(const struct call *call, struct add_options *options)
{
    struct {
        const char *word;
        bool *flag;
    } words[] = {{"NX", &options->only_new},  {"XX", &options->only_old},       {"GT", &options->only_greater},
                 {"LT", &options->only_less}, {"CH", &options->counts_changes}, {"INCR", &options->is_increment}};

    for (options->first = 2; options->first < call->argc; options->first++) {
        size_t i = 0;

        while (i < sizeof words / sizeof *words && !arg_is(call, options->first, words[i].word))
            i++;
        if (i == sizeof words / sizeof *words)
            return;
        *words[i].flag = true;
    }
}

static const char *options_error(const struct call *call, const struct add_options *options)
{
    size_t rest = call->argc - options->first;

    if (rest == 0 || rest % 2 == 1)
        return "ERR syntax error";
    if (options->only_new && options->only_old)
        return "ERR XX and NX options at the same time are not compatible";
    if ((options->only_greater && options->only_new) || (options->only_less && options->only_new) ||
        (options->only_greater && options->only_less))
        return "ERR GT, LT, and/or NX options at the same time are not compatible";
    if (options->is_increment && rest > 2)
        return "ERR INCR option supports a single increment-element pair";
    return NULL;
}

enum added { ADDED_NOTHING, ADDED_NEW, ADDED_CHANGED, ADDED_NAN };

/* *score: what is given, and then what the member has. */
static enum added add_member(struct value *value, const struct add_options *options, struct text member, double *score)
{
    struct dict_entry *entry = member_of(value, member);

    if (!entry) {
        if (options->only_old)
            return ADDED_NOTHING;
        zset_set(&value->zset, member, *score);
        return ADDED_NEW;
    }
    if (options->only_new)
        return ADDED_NOTHING;
    if (options->is_increment) {
        *score += entry->score;
        if (isnan(*score))
            return ADDED_NAN;
    }
    if ((options->only_greater && *score <= entry->score) || (options->only_less && *score >= entry->score))
        return ADDED_NOTHING;
    if (*score == entry->score)
        return ADDED_NOTHING;
    zset_set(&value->zset, member, *score);
    return ADDED_CHANGED;
}

static bool scores_are_valid(struct call *call, size_t first)
{
    double score;

    for (size_t i = first; i < call->argc; i += 2) {
        if (number_parse_double(call->argv[i], &score))
            continue;
        say_error(call, "ERR value is not a valid float");
        return false;
    }
    return true;
}

/* An increment that does nothing is nil; whether it does is what GT, LT, NX and XX say, not whether the score is new.
 */
static void say_increment(struct call *call, const struct add_options *options, bool was_there, double before,
                          double score)
{
    bool is_refused = (was_there && options->only_new) || (!was_there && options->only_old) ||
                      (was_there && options->only_greater && score <= before) ||
                      (was_there && options->only_less && score >= before);

    if (is_refused)
        say_nil(call);
    else
        say_double(call, score);
}

static void add(struct call *call, const struct add_options *options)
{
    struct value *value;
    int64_t added = 0, changed = 0;
    double score = 0, before = 0;
    bool was_there = false;

    if (!read_zset(call, &value))
        return;
    if (!value && options->only_old) {
        if (options->is_increment)
            say_nil(call);
        else
            say_integer(call, 0);
        return;
    }
    (void)!space_write(call, call->argv[1], VALUE_ZSET, &value);
    for (size_t i = options->first; i < call->argc; i += 2) {
        struct dict_entry *entry = member_of(value, call->argv[i + 1]);

        was_there = entry;
        before = entry ? entry->score : 0;
        (void)!number_parse_double(call->argv[i], &score);
        enum added what = add_member(value, options, call->argv[i + 1], &score);
        if (what == ADDED_NAN) {
            say_error(call, "ERR resulting score is not a number (NaN)");
            return;
        }
        added += what == ADDED_NEW;
        changed += what == ADDED_CHANGED;
    }
    if (options->is_increment)
        say_increment(call, options, was_there, before, score);
    else
        say_integer(call, options->counts_changes ? added + changed : added);
    space_prune(call, call->argv[1], value);
}

void cmd_zadd(struct call *call)
{
    struct add_options options = {0};
    const char *error;

    read_options(call, &options);
    error = options_error(call, &options);
    if (error)
        say_error(call, error);
    else if (scores_are_valid(call, options.first))
        add(call, &options);
}

void cmd_zincrby(struct call *call)
{
    struct add_options options = {.is_increment = true, .first = 2};

    if (scores_are_valid(call, 2))
        add(call, &options);
}

void cmd_zrem(struct call *call)
{
    struct value *value;
    int64_t removed = 0;

    if (!read_zset(call, &value))
        return;
    for (size_t i = 2; value && i < call->argc; i++)
        removed += zset_remove(&value->zset, call->argv[i]);
    space_prune(call, call->argv[1], value);
    say_integer(call, removed);
}

void cmd_zcard(struct call *call)
{
    struct value *value;

    if (read_zset(call, &value))
        say_integer(call, value ? (int64_t)zset_count(&value->zset) : 0);
}

static void say_score(struct call *call, const struct dict_entry *entry)
{
    if (entry)
        say_double(call, entry->score);
    else
        say_nil(call);
}

void cmd_zscore(struct call *call)
{
    struct value *value;

    if (read_zset(call, &value))
        say_score(call, member_of(value, call->argv[2]));
}

void cmd_zmscore(struct call *call)
{
    struct value *value;

    if (!read_zset(call, &value))
        return;
    say_array(call, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        say_score(call, member_of(value, call->argv[i]));
}

static void say_rank(struct call *call, bool is_reverse)
{
    struct value *value;

    if (!read_zset(call, &value))
        return;
    struct dict_entry *entry = member_of(value, call->argv[2]);
    if (!entry) {
        say_nil(call);
        return;
    }
    size_t rank = zset_rank(&value->zset, entry);
    say_integer(call, (int64_t)(is_reverse ? zset_count(&value->zset) - 1 - rank : rank));
}

void cmd_zrank(struct call *call)
{
    say_rank(call, false);
}

void cmd_zrevrank(struct call *call)
{
    say_rank(call, true);
}

static void say_member(struct call *call, const struct dict_entry *entry, bool with_scores)
{
    say_text(call, entry->key);
    if (with_scores)
        say_double(call, entry->score);
}

/* count below 0: so many, each of them any. */
static void choose_members(struct call *call, const struct zset *zset, int64_t count, bool with_scores)
{
    size_t all = zset_count(zset);
    size_t most = count < 0 ? (size_t)-count : (size_t)count < all ? (size_t)count : all;
    bool *chosen;

    say_array(call, most * (with_scores ? 2 : 1));
    if (count < 0) {
        for (size_t i = 0; i < most; i++)
            say_member(call, zset->order[sim_random(call->server) % all], with_scores);
        return;
    }
    chosen = choose_places(call->server, all, most);
    for (size_t i = 0; i < all; i++)
        if (chosen[i])
            say_member(call, zset->order[i], with_scores);
    free(chosen);
}

void cmd_zrandmember(struct call *call)
{
    struct value *value;
    int64_t count = 1;
    bool with_scores = arg_is(call, 3, "WITHSCORES");

    if (call->argc > 2 && !random_count(call, 2, &count))
        return;
    if (call->argc > 4 || (call->argc == 4 && !with_scores)) {
        say_syntax(call);
        return;
    }
    if ((with_scores && !fits_twice(call, count)) || !read_zset(call, &value))
        return;
    if (!value && call->argc == 2)
        say_nil(call);
    else if (!value)
        say_array(call, 0);
    else if (call->argc == 2)
        say_text(call, value->zset.order[sim_random(call->server) % zset_count(&value->zset)]->key);
    else
        choose_members(call, &value->zset, count, with_scores);
}

#include "telling_internal.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/random.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PORTION = 512, /* endings in one script: it blocks Redis for some 30 ms if all were lost */
    PORTION_ARGS = 5,
    LOOK_AT_ONCE = 1024, /* changes */
    NUMBER_BYTES = 24,
    TIME_BYTES = 2 * NUMBER_BYTES,
    CHANGE_BYTES = MAKER_CHARS + NUMBER_BYTES,
};

/* In endings_tell.lua's reply, behind 'ok'. */
enum { REPLY_LOST, REPLY_UNKNOWN = 2, REPLY_SKIPPED };

struct telling {
    const struct lease_settings *settings;

    /* While a list is told: */
    struct kept_ending *list;
    size_t count, start;         /* told from `start` on, and then from the beginning */
    size_t at;                   /* how many are done */
    bool is_behind;              /* another node has told some of the last portion, and so perhaps what follows */
    size_t look_end, look_count; /* how far it has asked for changes that others have told, and for how many */
    struct told told;
    telling_done *done;
    void *done_arg;
};

static void tell(struct telling *telling);

struct telling *telling_create(const struct lease_settings *settings)
{
    struct telling *telling = mem_alloc(sizeof *telling);

    telling->settings = settings;
    return telling;
}

void telling_destroy(struct telling *telling)
{
    free(telling->list);
    free(telling);
}

static void finish(struct telling *telling, bool is_done)
{
    ENSURE(!is_done || telling->at == telling->count);
    telling->told.is_done = is_done;
    free(telling->list);
    telling->list = NULL;
    telling->done(telling->done_arg, &telling->told);
}

static struct kept_ending *ending_at(const struct telling *telling, size_t place)
{
    REQUIRE(place < telling->count);
    return &telling->list[(telling->start + place) % telling->count];
}

static void print_change(const struct kept_ending *ending, char ret_change[CHANGE_BYTES])
{
    ret_change[0] = '\0';
    if (ending->maker[0])
        snprintf(ret_change, CHANGE_BYTES, "%s:%" PRIu64, ending->maker, ending->number);
}

/* A portion */

static void on_told(void *arg, const struct redis_reply *reply)
{
    struct telling *telling = arg;
    uint64_t lost, unknown, skipped;

    if (!reply || !reply_count(reply_at(reply, REPLY_LOST), &lost) ||
        !reply_count(reply_at(reply, REPLY_UNKNOWN), &unknown) ||
        !reply_count(reply_at(reply, REPLY_SKIPPED), &skipped)) {
        finish(telling, false);
        return;
    }
    telling->told.lost += lost;
    telling->told.unknown += unknown;
    telling->is_behind = skipped > 0;
    tell(telling);
}

static struct text what_of(enum ending_what what, bool by_replacement)
{
    return what == ENDING_REVOKED     ? TEXT("r")
           : what == ENDING_SCHEDULED ? (by_replacement ? TEXT("p") : TEXT("e"))
           : what == ENDING_SUSPENDED ? TEXT("s")
           : what == ENDING_WITHDRAWN ? TEXT("n")
                                      : TEXT("-");
}

static void print_time(const struct kept_ending *ending, char ret_time[TIME_BYTES])
{
    if (ending->what == ENDING_SCHEDULED || ending->what == ENDING_WITHDRAWN)
        snprintf(ret_time, TIME_BYTES, "%" PRId64 ":%" PRId64, ending->at_ms, ending->said_ms);
    else
        snprintf(ret_time, TIME_BYTES, "%" PRId64, ending->at_ms);
}

static void tell_portion(struct telling *telling, size_t count)
{
    const struct lease_settings *settings = telling->settings;
    struct text argv[PORTION * PORTION_ARGS];
    char at[PORTION][TIME_BYTES], change[PORTION][CHANGE_BYTES];

    for (size_t i = 0; i < count; i++) {
        const struct kept_ending *ending = ending_at(telling, telling->at + i);
        struct text *arg = &argv[i * PORTION_ARGS];

        print_time(ending, at[i]);
        print_change(ending, change[i]);
        arg[0] = id_text(&ending->subject);
        arg[1] = what_of(ending->what, ending->by_replacement);
        arg[2] = text_of(at[i]);
        arg[3] = text_of(change[i]);
        arg[4] = ending->completes ? TEXT("1") : TEXT("0");
    }
    telling->at += count;
    settings->call(settings->arg, LEASE_TELL, count * PORTION_ARGS, argv, on_told, telling);
}

/* What others have told */

/* Whether the ending is the first of its change in what is left. Those of a change follow each other. */
static bool begins_change(const struct telling *telling, size_t place)
{
    const struct kept_ending *ending = ending_at(telling, place), *before;

    if (!ending->maker[0] || place == telling->at)
        return ending->maker[0];
    before = ending_at(telling, place - 1);
    return ending->number != before->number || strcmp(ending->maker, before->maker) != 0;
}

/* Moves what others have not told to the end of what was looked at. */
static void on_looked(void *arg, const struct redis_reply *reply)
{
    struct telling *telling = arg;
    size_t left = telling->look_end, change = telling->look_count;

    if (!reply || reply->count != telling->look_count) {
        finish(telling, false);
        return;
    }
    for (size_t place = telling->look_end; place-- > telling->at;) {
        const struct kept_ending *ending = ending_at(telling, place);
        uint64_t is_told = 0;

        if (ending->maker[0] && !reply_count(reply_at(reply, change - 1), &is_told)) {
            finish(telling, false);
            return;
        }
        change -= begins_change(telling, place);
        if (!is_told)
            *ending_at(telling, --left) = *ending;
    }
    ENSURE(left >= telling->at && change == 0);
    telling->is_behind = left == telling->look_end;
    telling->at = left;
    tell(telling);
}

/* Returns whether it asks. Endings without a place in a chain cannot be asked for. */
static bool look_ahead(struct telling *telling)
{
    const struct lease_settings *settings = telling->settings;
    struct text argv[LOOK_AT_ONCE];
    char change[LOOK_AT_ONCE][CHANGE_BYTES];
    size_t place = telling->at, count = 0;

    for (; place < telling->count && count < LOOK_AT_ONCE; place++) {
        if (!begins_change(telling, place))
            continue;
        print_change(ending_at(telling, place), change[count]);
        argv[count] = text_of(change[count]);
        count++;
    }
    telling->look_end = place;
    telling->look_count = count;
    if (count > 0)
        settings->call(settings->arg, LEASE_TOLD, count, argv, on_looked, telling);
    return count > 0;
}

/* The list */

/* One script at a time: a change counts as told with its last ending. */
static void tell(struct telling *telling)
{
    size_t left = telling->count - telling->at;

    if (left == 0)
        finish(telling, true);
    else if (!telling->is_behind || !look_ahead(telling))
        tell_portion(telling, left < PORTION ? left : PORTION);
}

/* Nodes begin at different places, so that each ending is told soon by one of them. */
static size_t some_start(const struct kept_ending *list, size_t count)
{
    for (size_t i = 0, at = count > 0 ? random_below((uint32_t)count) : 0; i < count; i++, at = (at + 1) % count)
        if (at == 0 || list[at - 1].completes)
            return at;
    return 0;
}

void telling_run(struct telling *telling, struct kept_ending *list, size_t count, telling_done *done, void *arg)
{
    REQUIRE(!telling->list);
    telling->list = list;
    telling->count = count;
    telling->start = some_start(list, count);
    telling->at = 0;
    telling->is_behind = false;
    telling->told = (struct told){0};
    telling->done = done;
    telling->done_arg = arg;
    tell(telling);
}

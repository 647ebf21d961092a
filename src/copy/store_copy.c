#include "copy/store_copy.h"

#include "base/check.h"
#include "base/mem.h"
#include "copy_internal.h"
#include "core/limits.h"
#include "engine/partitions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALL_TIMEOUT_MS = 60000, /* of a batch of records, each synced to disk */
    CONNECT_TIMEOUTS = 2,
    LEASE_MARGIN_MS = 1000,
    WAIT_MS = 30000,
    CHANGES_BYTES = 24,
};

static copy_step links_are_up, source_ask, undo_judge, target_ask, judge, others_judge, source_watch, target_mark,
    compare, source_look_again, source_judge, target_finish, replicas_ask, copy_end;

static copy_step *const STEPS[] = {source_ask, target_ask,   judge,      others_judge, source_watch, target_mark,
                                   copy_wipe,  copy_records, copy_whole, copy_count,   compare};
/* Nothing changes the source once it is left. Whatever changed it before is seen by looking once more. */
static copy_step *const LAST_STEPS[] = {copy_source_leave, source_look_again, source_judge,
                                        target_finish,     replicas_ask,      copy_end};
static copy_step *const UNDO_STEPS[] = {source_ask, undo_judge, copy_source_return};

/* Connecting. The links of a source of unknown size come in two steps. */

static void on_state(void *arg, bool is_up)
{
    struct copy_side *side = arg;
    struct store_copy *copy = side->copy;

    side->up = is_up ? side->up + 1 : side->up - 1;
    if (copy->is_closing || copy->from.up < copy->from.open || copy->to.up < copy->to.open || copy->has_begun)
        return;
    copy->has_begun = true;
    uv_timer_stop(&copy->timer);
    copy_then(copy, links_are_up);
}

static void explain_link(struct store_copy *copy, const struct copy_side *side)
{
    for (unsigned i = 0; i < side->open; i++)
        if (!redis_link_is_ready(side->links[i]))
            copy_fail(copy, "%s cannot be reached: %s.", side->what, redis_link_trouble(side->links[i]));
}

static void on_late(uv_timer_t *timer)
{
    struct store_copy *copy = timer->data;

    explain_link(copy, &copy->from);
    explain_link(copy, &copy->to);
    copy_end(copy);
}

static void links_await(struct store_copy *copy)
{
    copy->has_begun = false;
    CHECK(uv_timer_start(&copy->timer, on_late, copy->connect_ms, 0) == 0);
}

static void side_init(struct store_copy *copy, struct copy_side *side, const char *what, struct store_settings *own,
                      const struct store_settings *settings)
{
    *own = *settings;
    if (copy->connect_ms < CONNECT_TIMEOUTS * settings->timeout_ms)
        copy->connect_ms = CONNECT_TIMEOUTS * settings->timeout_ms;
    if (own->timeout_ms < CALL_TIMEOUT_MS)
        own->timeout_ms = CALL_TIMEOUT_MS;
    *side = (struct copy_side){.copy = copy, .what = what, .settings = own};
}

static struct store_copy *copy_create(uv_loop_t *loop, const struct store_settings *from,
                                      void (*done)(void *arg, const struct store_copied *copied), void *arg)
{
    struct store_copy *copy = mem_alloc(sizeof *copy);

    copy->loop = loop;
    copy->done = done;
    copy->arg = arg;
    copy->steps = STEPS;
    copy->failed = copy->end = copy_end;
    arena_init(&copy->arena, NULL, 0);
    CHECK(uv_timer_init(loop, &copy->timer) == 0);
    copy->timer.data = copy;
    side_init(copy, &copy->from, "The source", &copy->from_settings, from);
    copy_links_open(&copy->from, from->partitions > 0 ? from->partitions : 1, on_state);
    return copy;
}

void store_copy(uv_loop_t *loop, const struct store_settings *from, const struct store_settings *to, const char *place,
                void (*done)(void *arg, const struct store_copied *copied), void *arg)
{
    struct store_copy *copy = copy_create(loop, from, done, arg);

    copy->place = place;
    side_init(copy, &copy->to, "The target", &copy->to_settings, to);
    copy_links_open(&copy->to, to->partitions, on_state);
    links_await(copy);
}

void store_copy_undo(uv_loop_t *loop, const struct store_settings *from,
                     void (*done)(void *arg, const struct store_copied *copied), void *arg)
{
    struct store_copy *copy = copy_create(loop, from, done, arg);

    copy->steps = UNDO_STEPS;
    copy->to = (struct copy_side){.copy = copy, .settings = &copy->to_settings};
    links_await(copy);
}

static void on_partitions(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    int64_t partitions = 1;

    if (reply->type != REPLY_NIL && (!reply_integer(reply, &partitions) || partitions < 1 ||
                                     partitions > PARTITIONS_MAX || (partitions & (partitions - 1)) != 0))
        copy_malformed(&copy->from, "number of partitions");
    else
        copy->from.settings->partitions = (unsigned)partitions;
}

static void more_links_open(struct store_copy *copy)
{
    if (copy->from.open == copy->from.settings->partitions) {
        copy_next(copy);
        return;
    }
    links_await(copy);
    copy_links_open(&copy->from, copy->from.settings->partitions, on_state);
}

/* A store of several partitions says it in each. */
static void partitions_ask(struct store_copy *copy)
{
    struct store_settings of_several = *copy->from.settings;
    struct buf name = BUF_FIXED(COPY_NAME_BYTES);

    of_several.partitions = 2;
    partition_prefix(&of_several, 0, &name);
    buf_append_str(&name, "store");
    copy_call(&copy->from, 0, 3, (struct text[]){TEXT("HGET"), buf_text(&name), TEXT("partitions")}, on_partitions,
              NULL);
    copy_then(copy, more_links_open);
}

static void links_are_up(struct store_copy *copy)
{
    if (copy->from.settings->partitions == 0)
        partitions_ask(copy);
    else
        copy_next(copy);
}

/* Looking at both */

/* As the marker of a target keeps them. */
static struct text print_changes(char storage[CHANGES_BYTES], const struct store_copy *copy)
{
    snprintf(storage, CHANGES_BYTES, "%016" PRIx64, copy->seen[0].changes);
    return text_of(storage);
}

static void source_ask(struct store_copy *copy)
{
    copy_source_ask(copy);
    copy_source_look(copy, 0);
    copy_next(copy);
}

static void on_target_store(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    struct text id, copying, changes, moved;
    char now[CHANGES_BYTES];

    if (!reply_text_or_nil(reply_at(reply, 0), &id) || !reply_text_or_nil(reply_at(reply, 1), &copying) ||
        !reply_text_or_nil(reply_at(reply, 2), &changes) || !reply_text_or_nil(reply_at(reply, 3), &moved)) {
        copy_malformed(&copy->to, "store");
    } else if (copying.len > 0 && !text_equal(copying, text_of(copy->id))) {
        copy_fail(copy, "A copy of another store into the target was interrupted: delete its names first.");
    } else if (moved.len > 0) {
        copy->left_before++;
    } else if (copying.len > 0) {
        copy->marked++;
        copy->is_outdated |= !text_equal(changes, print_changes(now, copy));
    } else if (text_equal(id, text_of(copy->id))) {
        copy->finished++;
    } else {
        copy->others += id.len > 0;
    }
}

static void on_target_accounts(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    copy->others += reply->type == REPLY_INTEGER && reply->integer != 0;
}

static void target_ask(struct store_copy *copy)
{
    for (unsigned i = 0; i < copy->to.settings->partitions; i++)
        copy_call_on(&copy->to, i, "HMGET", "store", TEXT(""),
                     COPY_WITH(TEXT("id"), TEXT("copying"), TEXT("copying_changes"), TEXT("moved")), on_target_store,
                     NULL);
    copy_next(copy);
}

/* Whether only the last step is missing: all was copied and compared. The source was left then, or by an earlier
 * version some partitions of the target were finished. */
static bool must_only_finish(const struct store_copy *copy)
{
    return copy->marked > 0 && (copy->finished > 0 || copy->moved_to.len > 0) &&
           copy->marked + copy->finished == copy->to.settings->partitions;
}

static void on_lease_over(uv_timer_t *timer)
{
    struct store_copy *copy = timer->data;

    copy_source_look(copy, 1);
    copy_then(copy, source_judge);
}

static const char SERVED[] = "Nodes serve the source: stop them all, and run the copy again.";

/* A node that crashed stays in the registry. One that serves listens, unless its connection has just broken. Then it
 * registers anew within a lease; one of an earlier version writes there four times. */
static void source_watch(struct store_copy *copy)
{
    uint64_t lease_ms = copy->lease_max_ms > 0 ? copy->lease_max_ms : LEASE_MS_MAX;

    if (copy->seen[0].nodes_listening > 0)
        copy_fail(copy, "%s", SERVED);
    if (copy->seen[0].nodes == 0)
        copy_next(copy);
    else
        CHECK(uv_timer_start(&copy->timer, on_lease_over, lease_ms + lease_ms / 4 + LEASE_MARGIN_MS, 0) == 0);
}

static void judge(struct store_copy *copy)
{
    if (must_only_finish(copy)) {
        if (copy->is_outdated)
            copy_fail(copy, "An earlier run lacked only its last step, and the source has changed since: delete the "
                            "target's names, and run the copy again.");
        copy->copied.was_finished_only = true;
        copy->steps = LAST_STEPS;
        copy_next(copy);
        return;
    }
    if (copy->finished > 0)
        copy_fail(copy, "The target is not empty: it holds this store already.");
    if (copy->moved_to.len > 0)
        copy_fail(copy,
                  "The source has moved to %.*s: copy from there. If that place is lost for good, 'store copy "
                  "--undo' makes the source a store again.",
                  TEXT_ARG(copy->moved_to));
    if (copy->marked == 0 && copy->left_before == 0)
        for (unsigned i = 0; i < copy->to.settings->partitions; i++)
            copy_read(&copy->to, i, "EXISTS", "accounts", TEXT(""), on_target_accounts, NULL);
    copy_next(copy);
}

static void others_judge(struct store_copy *copy)
{
    if (copy->others > 0)
        copy_fail(copy, "The target is not empty: choose another Redis or --prefix.");
    copy_next(copy);
}

static void source_judge(struct store_copy *copy)
{
    if (copy->seen[1].nodes_listening > 0 || copy->seen[0].nodes != copy->seen[1].nodes)
        copy_fail(copy, "%s", SERVED);
    if (copy->seen[0].changes != copy->seen[1].changes)
        copy_fail(copy, "Something changes the source: stop it, and run the copy again.");
    copy_next(copy);
}

static void undo_judge(struct store_copy *copy)
{
    if (copy->moved_to.len == 0)
        copy_fail(copy, "The source has not moved: there is nothing to undo.");
    copy_next(copy);
}

/* Copying */

/* MULTI or EXEC. */
static void bracket(struct store_copy *copy, unsigned to, struct text word)
{
    copy_call(&copy->to, to, 1, &word, NULL, NULL);
}

static void target_mark(struct store_copy *copy)
{
    char newer[16], partitions[16], changes[CHANGES_BYTES];

    snprintf(newer, sizeof newer, "%d", STORE_COPY_SCHEMA);
    snprintf(partitions, sizeof partitions, "%u", copy->to.settings->partitions);
    copy->has_written = true;
    for (unsigned i = 0; i < copy->to.settings->partitions; i++) {
        bracket(copy, i, TEXT("MULTI"));
        copy_write(copy, i, "DEL", "store", TEXT(""), 0, NULL);
        copy_write(copy, i, "HSET", "store", TEXT(""),
                   COPY_WITH(TEXT("copying"), text_of(copy->id), TEXT("copying_changes"), print_changes(changes, copy),
                             TEXT("partitions"), text_of(partitions)));
        copy_write(copy, i, "SET", "schema", TEXT(""), COPY_WITH(text_of(newer)));
        bracket(copy, i, TEXT("EXEC"));
    }
    copy_next(copy);
}

/* Comparing, and the end. Nothing of the target is trusted before. */

static void compare_count(struct store_copy *copy, const char *what, uint64_t from, uint64_t to)
{
    if (from != to)
        copy_fail(copy,
                  "The source has %" PRIu64 " %s, the target %" PRIu64 ": stop what still changes the source, and run "
                  "the copy again.",
                  from, what, to);
}

static void compare(struct store_copy *copy)
{
    const struct store_copy_counts *from = &copy->counted[0], *to = &copy->counted[1];

    compare_count(copy, "accounts", from->accounts, to->accounts);
    compare_count(copy, "suspended accounts", from->suspended, to->suspended);
    compare_count(copy, "keys", from->keys, to->keys);
    compare_count(copy, "users", from->users, to->users);
    compare_count(copy, "events", from->events, to->events);
    copy->copied.counts = *to;
    copy->steps = LAST_STEPS;
    copy_next(copy);
}

static void source_look_again(struct store_copy *copy)
{
    copy_source_look(copy, 1);
    copy_next(copy);
}

/* From the first answer on, nodes may serve the target. */
static void target_finish(struct store_copy *copy)
{
    unsigned count = copy->to.settings->partitions;
    char number[24], partitions[16], partition[16];

    copy->failed = copy_end;
    snprintf(number, sizeof number, "%" PRIu64, copy->schema);
    snprintf(partitions, sizeof partitions, "%u", count);
    for (unsigned i = 0; i < count; i++) {
        snprintf(partition, sizeof partition, "%u", i);
        bracket(copy, i, TEXT("MULTI"));
        copy_write(copy, i, "HSET", "store", TEXT(""),
                   COPY_WITH(TEXT("id"), text_of(copy->id), TEXT("partitions"), text_of(partitions), TEXT("partition"),
                             text_of(partition)));
        copy_write(copy, i, "HDEL", "store", TEXT(""), COPY_WITH(TEXT("copying"), TEXT("copying_changes")));
        copy_write(copy, i, "SET", "schema", TEXT(""), COPY_WITH(text_of(number)));
        bracket(copy, i, TEXT("EXEC"));
    }
    copy_next(copy);
}

static void on_replicas(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    int64_t replicas;

    if (!reply_integer(reply, &replicas) || replicas < copy->to.settings->min_replicas)
        copy_fail(copy,
                  "All is copied, but too few replicas of the target have it: bring them back before nodes start.");
}

static void replicas_ask(struct store_copy *copy)
{
    char replicas[24], timeout[24];

    copy->may_have_left = false;
    copy->copied.is_whole = true;
    snprintf(replicas, sizeof replicas, "%" PRId64, copy->to.settings->min_replicas);
    snprintf(timeout, sizeof timeout, "%d", WAIT_MS);
    for (unsigned i = 0; copy->to.settings->min_replicas > 0 && i < copy->to.settings->partitions; i++)
        copy_call(&copy->to, i, 3, (struct text[]){TEXT("WAIT"), text_of(replicas), text_of(timeout)}, on_replicas,
                  NULL);
    copy_next(copy);
}

/* Closing: the links, then what finds Redis for them. */

static void on_finder_closed(void *arg)
{
    struct store_copy *copy = arg;

    if (--copy->open > 0)
        return;
    copy->copied.from = copy->from.settings->partitions;
    copy->copied.to = copy->to.settings->partitions;
    copy->copied.trouble = copy->cause[0] ? copy->cause : copy->trouble[0] ? copy->trouble : NULL;
    copy->copied.is_refusal = !copy->has_written && !copy->may_have_left;
    copy->copied.lacks_last_step = copy->may_have_left;
    copy->done(copy->arg, &copy->copied);
    copy_records_finish(copy);
    copy_whole_finish(copy);
    copy_count_finish(copy);
    arena_finish(&copy->arena);
    free(copy);
}

static void on_link_closed(void *arg)
{
    struct store_copy *copy = arg;

    if (--copy->open > 0)
        return;
    copy->open = 1;
    copy_finders_close(&copy->from, on_finder_closed);
    copy_finders_close(&copy->to, on_finder_closed);
    on_finder_closed(copy);
}

static void on_timer_closed(uv_handle_t *timer)
{
    on_link_closed(timer->data);
}

static void links_close(struct copy_side *side)
{
    for (unsigned i = 0; i < side->open; i++)
        redis_link_close(side->links[i], on_link_closed, side->copy);
    side->copy->open += side->open;
}

static void copy_end(struct store_copy *copy)
{
    if (copy->is_closing)
        return;
    copy->is_closing = true;
    copy->open = 1;
    uv_close((uv_handle_t *)&copy->timer, on_timer_closed);
    links_close(&copy->from);
    links_close(&copy->to);
}

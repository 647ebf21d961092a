#include "lease/lower.h"
#include "base/mem.h"
#include "core/limits.h"
#include "lease/lease.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBER_BYTES = 24, DIGEST_CHARS = 40 };

struct lower_call {
    struct lease *lease;
    struct barrier *barrier;
    char mark[BARRIER_NAME_CHARS + 2]; /* as a revoker's: nobody else gives it */
    char digest[DIGEST_CHARS + 1];     /* of the entries that may be in the way only as they are now */
    int64_t lease_ms;
    struct lease_lowering found;
    void (*done)(void *arg, enum lease_lowered result, const struct lease_lowering *found);
    void *arg;
};

static void finish(struct lower_call *call, enum lease_lowered result)
{
    call->done(call->arg, result, &call->found);
    free(call);
}

static void call_script(struct lower_call *call, int64_t waited_ms, lease_called *done)
{
    const struct lease_settings *settings = lease_settings_of(call->lease);
    char lease[NUMBER_BYTES], waited[NUMBER_BYTES];

    snprintf(lease, sizeof lease, "%" PRId64, call->lease_ms);
    snprintf(waited, sizeof waited, "%" PRId64, waited_ms);
    const struct text argv[] = {text_of(lease), text_of(call->mark), text_of(waited), TEXT("operator"),
                                text_of(call->digest)};
    settings->call(settings->arg, LEASE_LOWER, sizeof argv / sizeof *argv, argv, done, call);
}

/* The longest lease when the script ran. */
static bool read_longest(struct lower_call *call, const struct redis_reply *reply)
{
    int64_t *longest_ms = &call->found.longest_ms;
    bool is_lease = reply_integer(reply_at(reply, 0), longest_ms) && *longest_ms >= 0 && *longest_ms <= LEASE_MS_MAX;

    if (!is_lease)
        *longest_ms = -1;
    return is_lease;
}

static enum lease_lowered read_lowered(struct lower_call *call, const struct redis_reply *reply)
{
    int64_t in_the_way;

    if (!reply)
        return LEASE_LOWER_FAILED;
    if (!read_longest(call, reply) || !reply_integer(reply_at(reply, 1), &in_the_way) ||
        !reply_integer(reply_at(reply, 2), &call->found.living) ||
        !reply_integer(reply_at(reply, 3), &call->found.living_ms))
        return LEASE_LOWER_MALFORMED;
    if (call->found.longest_ms <= call->lease_ms)
        return LEASE_NOT_LONGER;
    return in_the_way ? LEASE_LOWER_IN_USE : LEASE_LOWERED;
}

static void on_lowered(void *arg, const struct redis_reply *reply)
{
    finish(arg, read_lowered(arg, reply));
}

/* Every lease has expired that this Redis, or one before it, granted before the mark. If the connection was lost, the
 * next Redis may be another one, and nothing is lowered. */
static void on_over(void *arg, bool is_over)
{
    struct lower_call *call = arg;

    if (is_over)
        call_script(call, call->found.longest_ms, on_lowered);
    else
        finish(call, LEASE_LOWER_FAILED);
}

static void on_marked(void *arg, const struct redis_reply *reply)
{
    struct lower_call *call = arg;
    bool is_read = reply && read_longest(call, reply);
    bool is_longer = is_read && call->found.longest_ms > call->lease_ms;

    if (is_longer && reply_chars(reply_at(reply, 2), call->digest, sizeof call->digest) &&
        barrier_wait(call->barrier, call->found.longest_ms, reply_at(reply, 1), on_over, call))
        return;
    barrier_drop(call->barrier);
    finish(call, !reply ? LEASE_LOWER_FAILED : is_read && !is_longer ? LEASE_NOT_LONGER : LEASE_LOWER_MALFORMED);
}

void lease_lower(struct lease *lease, int64_t lease_ms,
                 void (*done)(void *arg, enum lease_lowered result, const struct lease_lowering *found), void *arg)
{
    struct lower_call *call = mem_alloc(sizeof *call);

    *call = (struct lower_call){.lease = lease, .lease_ms = lease_ms, .done = done, .arg = arg};
    call->barrier = barrier_begin(lease_barriers(lease));
    snprintf(call->mark, sizeof call->mark, "?%s", barrier_name(call->barrier).ptr);
    call_script(call, -1, on_marked);
}

#include "base/check.h"
#include "base/mem.h"
#include "copy_internal.h"
#include "engine/partitions.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLS_MAX = 256 * 1024, BACKOFF_MAX_MS = 1000, ARGS_MAX = 2 + COPY_ARGS_MAX };

static void copy_go_on(struct store_copy *copy)
{
    copy_step *step = copy->trouble[0] ? copy->failed : copy->then;

    if (copy->due > 0 || !step || copy->is_closing)
        return;
    copy->then = NULL;
    step(copy);
}

void copy_then(struct store_copy *copy, copy_step *step)
{
    copy->then = step;
    copy_go_on(copy);
}

void copy_next(struct store_copy *copy)
{
    copy_then(copy, *copy->steps++);
}

void copy_fail(struct store_copy *copy, const char *format, ...)
{
    va_list args;

    if (copy->trouble[0])
        return;
    va_start(args, format);
    vsnprintf(copy->trouble, sizeof copy->trouble, format, args);
    va_end(args);
}

void copy_malformed(struct copy_side *side, const char *what)
{
    copy_fail(side->copy, "%s holds a malformed %s.", side->what, what);
}

struct call {
    struct copy_side *side;
    copy_answered *answered;
    void *item;
};

/* What DUMP writes, an older server may be unable to read. */
static void explain_error(const struct copy_side *side, struct text error)
{
    static const char VERSION[] = "DUMP payload version";

    for (size_t i = 0; i + sizeof VERSION - 1 <= error.len; i++)
        if (memcmp(error.ptr + i, VERSION, sizeof VERSION - 1) == 0)
            copy_fail(side->copy,
                      "%s is an older version of Redis than the source and cannot read its records: "
                      "upgrade it.",
                      side->what);
    copy_fail(side->copy, "%s answers: %.*s.", side->what, TEXT_ARG(error));
}

static void on_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct call call = *(struct call *)arg;
    struct store_copy *copy = call.side->copy;

    free(arg);
    if (outcome != REDIS_REPLIED)
        copy_fail(copy, "%s does not answer.", call.side->what);
    else if (reply->type == REPLY_ERROR)
        explain_error(call.side, reply_error_shown(reply));
    else if (call.answered && !copy->trouble[0])
        call.answered(copy, call.item, reply);
    copy->due--;
    copy_go_on(copy);
}

void copy_call(struct copy_side *side, unsigned partition, size_t argc, const struct text *argv,
               copy_answered *answered, void *item)
{
    struct call *call = mem_alloc(sizeof *call);

    *call = (struct call){side, answered, item};
    side->copy->due++;
    redis_link_call(side->links[partition], argc, argv, on_answered, call);
}

void copy_call_on(struct copy_side *side, unsigned partition, const char *command, const char *kind, struct text rest,
                  size_t argc, const struct text *argv, copy_answered *answered, void *item)
{
    struct copy_name name;
    struct text all[ARGS_MAX];

    CHECK(argc + 2 <= ARGS_MAX);
    all[0] = text_of(command);
    all[1] = copy_name(&name, side, partition, kind, rest);
    if (argc > 0)
        memcpy(all + 2, argv, argc * sizeof *argv);
    copy_call(side, partition, argc + 2, all, answered, item);
}

void copy_read(struct copy_side *side, unsigned partition, const char *command, const char *kind, struct text rest,
               copy_answered *answered, void *item)
{
    copy_call_on(side, partition, command, kind, rest, 0, NULL, answered, item);
}

void copy_write(struct store_copy *copy, unsigned to, const char *command, const char *kind, struct text rest,
                size_t argc, const struct text *argv)
{
    copy_call_on(&copy->to, to, command, kind, rest, argc, argv, NULL, NULL);
}

struct text copy_name(struct copy_name *name, const struct copy_side *side, unsigned partition, const char *kind,
                      struct text rest)
{
    struct buf out;

    buf_init_fixed(&out, name->storage, sizeof name->storage);
    partition_prefix(side->settings, partition, &out);
    buf_append_str(&out, kind);
    buf_append_text(&out, rest);
    return buf_text(&out);
}

struct text copy_pattern(struct copy_name *name, const struct copy_side *side, unsigned partition)
{
    struct buf plain = BUF_FIXED(REDIS_PREFIX_MAX_BYTES + 1);
    struct buf out;

    partition_prefix(side->settings, partition, &plain);
    buf_init_fixed(&out, name->storage, sizeof name->storage);
    for (size_t i = 0; i < plain.len; i++) {
        if (strchr("\\*?[]", plain.ptr[i]))
            buf_append_char(&out, '\\');
        buf_append_char(&out, plain.ptr[i]);
    }
    buf_append_char(&out, '*');
    return buf_text(&out);
}

bool copy_takes_over(const struct store_copy *copy, unsigned from, unsigned to)
{
    unsigned sources = copy->from.settings->partitions, targets = copy->to.settings->partitions;
    unsigned fewer = sources < targets ? sources : targets;

    return (from & (fewer - 1)) == (to & (fewer - 1));
}

/* How the links find their Redis; NULL: at the host of the address. */
static struct redis_resolver *resolver_of(struct copy_side *side, unsigned partition)
{
    const struct store_settings *s = side->settings;
    struct buf prefix = BUF_FIXED(REDIS_PREFIX_MAX_BYTES);

    if (s->target.found == REDIS_BY_SENTINEL) {
        if (!side->sentinel)
            side->sentinel = redis_sentinel_create(side->copy->loop, &s->target, s->tls, s->timeout_ms);
        return redis_sentinel_resolver(side->sentinel);
    }
    if (s->target.found == REDIS_AT_HOST)
        return NULL;
    if (!side->cluster)
        side->cluster = redis_cluster_create(side->copy->loop, &s->target, s->tls, s->timeout_ms);
    partition_prefix(s, partition, &prefix);
    return redis_cluster_resolver(side->cluster, redis_slot_of(buf_text(&prefix)));
}

void copy_links_open(struct copy_side *side, unsigned partitions, void (*on_state)(void *arg, bool is_up))
{
    const struct store_settings *s = side->settings;
    struct redis_link_settings link = {
        .name = "copy",
        .durations = HISTOGRAM_REDIS_CHANGES,
        .timeout_ms = s->timeout_ms,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .calls_max = CALLS_MAX,
        .tls = s->tls,
        .to_master = true,
    };

    for (; side->open < partitions; side->open++) {
        link.resolver = resolver_of(side, side->open);
        side->links[side->open] = redis_link_create(side->copy->loop, &s->target, &link, on_state, side);
    }
}

void copy_finders_close(struct copy_side *side, void (*closed)(void *arg))
{
    side->copy->open += (side->sentinel ? 1U : 0) + (side->cluster ? 1U : 0);
    if (side->sentinel)
        redis_sentinel_close(side->sentinel, closed, side->copy);
    if (side->cluster)
        redis_cluster_close(side->cluster, closed, side->copy);
}

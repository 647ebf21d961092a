#include "burden_internal.h"

#include "base/check.h"
#include "base/metrics.h"

void burdens_init(struct burdens *burdens, uv_loop_t *loop, size_t max_bytes, void (*cut)(struct load *load))
{
    burdens->loop = loop;
    burdens->max_bytes = max_bytes;
    burdens->cut = cut;
    for (enum burden_kind kind = 0; kind < BURDEN_KINDS; kind++)
        for (int class = 0; class < BURDEN_CLASSES; class ++)
            list_init(&burdens->kinds[kind].by_size[class]);
}

void load_init(struct load *load, const char *peer)
{
    load->peer = peer;
    for (enum burden_kind kind = 0; kind < BURDEN_KINDS; kind++)
        list_init(&load->parts[kind].in_class);
}

/* Classes double in size, so one of the heaviest loads is found without visiting all of them. */
static int class_of(size_t bytes)
{
    int class = 63 - __builtin_clzll(bytes);

    return class < BURDEN_CLASSES ? class : BURDEN_CLASSES - 1;
}

static void note(struct burdens *burdens, struct load *load, enum burden_kind kind, size_t bytes)
{
    struct burden *burden = &burdens->kinds[kind];
    struct load_part *part = &load->parts[kind];

    ALL_INVARIANT(burden->bytes >= part->bytes);
    burden->bytes += bytes - part->bytes;
    part->bytes = bytes;
    list_remove(&part->in_class);
    if (bytes > 0)
        list_append(&burden->by_size[class_of(bytes)], &part->in_class);
}

static struct load *heaviest(struct burdens *burdens, enum burden_kind kind)
{
    for (int class = BURDEN_CLASSES - 1; class >= 0; class --) {
        struct list *node = list_first(&burdens->kinds[kind].by_size[class]);

        if (node)
            return LIST_ENTRY(node, struct load, parts[kind].in_class);
    }
    UNREACHABLE();
}

static void cut(struct burdens *burdens, struct load *load, enum burden_kind kind)
{
    static const char *const WHY[BURDEN_KINDS] = {
        [BURDEN_INPUT] = "connection cut: unfinished requests exceed the limit, and it holds the most",
        [BURDEN_OUTPUT] = "connection cut: unread responses exceed the limit, and it holds the most",
    };

    metric_add(METRIC_CONNECTIONS_SHED, 1);
    if (log_pause_is_over(&burdens->kinds[kind].pause, uv_now(burdens->loop), COMPLAINT_INTERVAL_MS))
        LOG(LOG_WARN, WHY[kind], log_str("peer", load->peer), log_int("bytes", (int64_t)load->parts[kind].bytes),
            log_int("all_bytes", (int64_t)burdens->kinds[kind].bytes));
    burdens->cut(load);
    ENSURE(list_empty(&load->parts[kind].in_class)); /* otherwise it would be cut for ever */
}

void burden_set(struct burdens *burdens, struct load *load, enum burden_kind kind, size_t bytes)
{
    if (load->parts[kind].bytes == bytes)
        return;
    note(burdens, load, kind, bytes);
    while (burdens->kinds[kind].bytes > burdens->max_bytes)
        cut(burdens, heaviest(burdens, kind), kind);
}

void burden_forget(struct burdens *burdens, struct load *load)
{
    for (enum burden_kind kind = 0; kind < BURDEN_KINDS; kind++)
        note(burdens, load, kind, 0);
}

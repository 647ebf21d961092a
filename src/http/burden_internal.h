/* Memory that peers make the server hold: unfinished requests and unread responses. Each kind has a bound over all
 * connections. Beyond it, the connection that holds most is cut, whichever one went over. */
#pragma once
#include "base/list.h"
#include "base/log.h"
#include <uv.h>

/* The shortest time between two log lines about the same problem. */
enum { COMPLAINT_INTERVAL_MS = 10 * 1000 };

enum burden_kind { BURDEN_INPUT, BURDEN_OUTPUT, BURDEN_KINDS };
enum { BURDEN_CLASSES = 32 };

/* What one connection holds; embedded in it. */
struct load {
    const char *peer; /* for the log */
    struct load_part {
        size_t bytes;
        struct list in_class;
    } parts[BURDEN_KINDS];
};

struct burdens {
    uv_loop_t *loop;
    size_t max_bytes; /* of each kind */
    struct burden {
        size_t bytes;
        struct list by_size[BURDEN_CLASSES]; /* loads by the binary logarithm of their bytes; the oldest first */
        struct log_pause pause;              /* of its log line */
    } kinds[BURDEN_KINDS];
    void (*cut)(struct load *load);
};

/* cut closes the connection that the load belongs to, which calls burden_forget(). */
void burdens_init(struct burdens *burdens, uv_loop_t *loop, size_t max_bytes, void (*cut)(struct load *load));
void load_init(struct load *load, const char *peer);
/* The connection now holds this many bytes. If the total exceeds the bound, connections are cut, possibly this one. */
void burden_set(struct burdens *burdens, struct load *load, enum burden_kind kind, size_t bytes);
/* The connection is being closed. */
void burden_forget(struct burdens *burdens, struct load *load);

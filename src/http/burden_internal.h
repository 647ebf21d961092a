/* What peers make the server hold: requests that have not come whole, answers that are not read. All connections
 * together have a bound for each; beyond it the one that holds most is cut, whoever made the bound overflow. */
#pragma once
#include "base/list.h"
#include "base/log.h"
#include <uv.h>

/* Between two log lines of the same complaint. */
enum { COMPLAINT_INTERVAL_MS = 10 * 1000 };

enum burden_kind { BURDEN_INPUT, BURDEN_OUTPUT, BURDEN_KINDS };
enum { BURDEN_CLASSES = 32 };

/* What one connection holds, a member of it. */
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
        struct list
            by_size[BURDEN_CLASSES]; /* loads by the logarithm of their bytes, the first ones are there for longest */
        struct log_pause pause;      /* of the complaint about it */
    } kinds[BURDEN_KINDS];
    void (*cut)(struct load *load);
};

/* cut closes the connection that has the load; it calls burden_forget(). */
void burdens_init(struct burdens *burdens, uv_loop_t *loop, size_t max_bytes, void (*cut)(struct load *load));
void load_init(struct load *load, const char *peer);
/* The connection holds so many bytes now. Where all together hold too many, connections are cut, this one perhaps. */
void burden_set(struct burdens *burdens, struct load *load, enum burden_kind kind, size_t bytes);
/* The connection is closed. */
void burden_forget(struct burdens *burdens, struct load *load);

#include "node_gate.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include <malloc.h>
#include <stdlib.h>

struct node_gate {
    struct gate *gate;
    uv_timer_t timer;
    void (*closed)(void *arg);
    void *arg;
};

static void on_timer(uv_timer_t *timer)
{
    gate_turn(((struct node_gate *)timer->data)->gate, clock_boot_ns() / CLOCK_NS_PER_MS);
}

static void wake(void *arg, uint64_t in_ms)
{
    struct node_gate *host = arg;

    CHECK(uv_timer_start(&host->timer, on_timer, in_ms, 0) == 0);
}

/* A burst of bodies and answers leaves memory that the allocator would keep. */
static void spent(void *arg)
{
    (void)arg;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

struct node_gate *node_gate_create(uv_loop_t *loop, const struct settings *settings)
{
    struct node_gate *host = mem_alloc(sizeof *host);

    CHECK(uv_timer_init(loop, &host->timer) == 0);
    host->timer.data = host;
    host->gate = gate_create(&(struct gate_settings){.reads_per_second = (unsigned)settings->reads_per_second,
                                                     .work_per_account = (unsigned)settings->work_per_account,
                                                     .wake = wake,
                                                     .spent = spent,
                                                     .arg = host});
    return host;
}

struct gate *node_gate_of(struct node_gate *host)
{
    return host->gate;
}

void node_gate_shut(struct node_gate *host)
{
    gate_close(host->gate);
}

static void on_closed(uv_handle_t *handle)
{
    struct node_gate *host = handle->data;
    void (*closed)(void *arg) = host->closed;
    void *arg = host->arg;

    gate_destroy(host->gate);
    free(host);
    closed(arg);
}

void node_gate_close(struct node_gate *host, void (*closed)(void *arg), void *arg)
{
    host->closed = closed;
    host->arg = arg;
    uv_close((uv_handle_t *)&host->timer, on_closed);
}

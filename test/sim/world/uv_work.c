/* In place of libuv's pool of threads: work is done at once, and told later. */
#include "base/check.h"
#include <uv.h>

/* As libuv's src/uv-common.h declares it. */
enum uv__work_kind { UV__WORK_CPU, UV__WORK_FAST_IO, UV__WORK_SLOW_IO };
void uv__work_submit(uv_loop_t *loop, struct uv__work *work, enum uv__work_kind kind,
                     void (*run)(struct uv__work *work), void (*done)(struct uv__work *work, int status));
void uv__work_done(uv_async_t *handle);
void uv__threadpool_cleanup(void);

/* loop->wq is a ring of such, as libuv has them. */
struct ring {
    struct ring *next, *prev;
};

static struct ring *ring_of(uv_loop_t *loop)
{
    return (struct ring *)(void *)loop->wq;
}

void uv__work_submit(uv_loop_t *loop, struct uv__work *work, enum uv__work_kind kind,
                     void (*run)(struct uv__work *work), void (*done)(struct uv__work *work, int status))
{
    struct ring *ring = ring_of(loop), *node = (struct ring *)(void *)work->wq;

    (void)kind;
    work->loop = loop;
    work->work = run;
    work->done = done;
    run(work);
    node->next = ring;
    node->prev = ring->prev;
    node->prev->next = node;
    ring->prev = node;
    CHECK(uv_async_send(&loop->wq_async) == 0);
}

void uv__work_done(uv_async_t *handle)
{
    uv_loop_t *loop = (uv_loop_t *)(void *)((char *)handle - offsetof(uv_loop_t, wq_async));
    struct ring *ring = ring_of(loop);

    while (ring->next != ring) {
        struct ring *node = ring->next;
        struct uv__work *work = (struct uv__work *)(void *)((char *)node - offsetof(struct uv__work, wq));

        ring->next = node->next;
        node->next->prev = ring;
        work->done(work, 0);
    }
}

void uv__threadpool_cleanup(void)
{
}

/* Nothing waits. */
int uv_cancel(uv_req_t *request)
{
    (void)request;
    return UV_EBUSY;
}

int uv_queue_work(uv_loop_t *loop, uv_work_t *request, uv_work_cb work, uv_after_work_cb done)
{
    (void)loop;
    (void)request;
    (void)work;
    (void)done;
    return UV_ENOSYS; /* base/background.h is for that */
}

/* Of the C library, as relocations that a shared object cannot have: image.cmake gives them these names. */
char **image_environ;
FILE *image_stderr;
struct in6_addr image_in6addr_any;

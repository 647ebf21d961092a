#include "base/background.h"
#include "base/check.h"

static void on_closed(uv_handle_t *ended)
{
    struct background *background = ended->data;

    background->done(background);
}

static void on_ended(uv_async_t *ended)
{
    struct background *background = ended->data;

    CHECK(uv_thread_join(&background->thread) == 0);
    uv_close((uv_handle_t *)ended, on_closed);
}

static void run(void *arg)
{
    struct background *background = arg;

    background->work(background);
    CHECK(uv_async_send(&background->ended) == 0);
}

void background_start(struct background *background, uv_loop_t *loop, void (*work)(struct background *background),
                      void (*done)(struct background *background))
{
    background->work = work;
    background->done = done;
    CHECK(uv_async_init(loop, &background->ended, on_ended) == 0);
    background->ended.data = background;
    background->status = uv_thread_create(&background->thread, run, background);
    if (background->status != 0)
        uv_close((uv_handle_t *)&background->ended, on_closed);
}

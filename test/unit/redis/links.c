#include "links.h"
#include "deadline.h"
#include "test_loop.h"
#include <criterion/criterion.h>

static void on_closed(void *open)
{
    --*(unsigned *)open;
}

static bool are_closed(void *open)
{
    return *(unsigned *)open == 0;
}

void links_close(uv_loop_t *loop, struct redis_link *const *links, unsigned count)
{
    unsigned open = count;

    for (unsigned i = 0; i < count; i++)
        redis_link_close(links[i], on_closed, &open);
    cr_assert(test_loop_until(loop, are_closed, &open, PATIENCE_MS));
}

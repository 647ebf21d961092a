/* Several links of one test. */
#pragma once
#include "redis/link.h"

/* Closes them, and runs the loop until they are closed. */
void links_close(uv_loop_t *loop, struct redis_link *const *links, unsigned count);

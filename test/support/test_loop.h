/* Drives a libuv loop in tests, until something is true or a deadline has passed; never for a number of turns. */
#pragma once
#include <stdbool.h>
#include <uv.h>

typedef bool test_loop_predicate(void *arg);

/* Runs the loop until the predicate is true. False: timeout_ms passed first. The predicate is called before the first
 * turn and after each. */
bool test_loop_until(uv_loop_t *loop, test_loop_predicate *predicate, void *arg, unsigned timeout_ms);
/* Does so for a flag that a callback sets. */
bool test_loop_until_set(uv_loop_t *loop, const bool *flag, unsigned timeout_ms);
/* Runs the loop for a while, for tests that expect something not to happen. */
void test_loop_for(uv_loop_t *loop, unsigned ms);
/* Runs the loop until it is empty, at most PATIENCE_MS, and closes it. False: a handle or request is still alive, so
 * the test leaked it. */
bool test_loop_finish(uv_loop_t *loop);

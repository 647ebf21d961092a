/* Tests that wait, in virtual time (sim/kernel.h): the Redis that they start is simredis, in their own process. */
#pragma once

/* Before the first Redis of a test. */
void virtual_redis_begin(void);

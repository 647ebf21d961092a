/* Keeps the process from starting another thread: its stack would have to be larger than the address space. */
#pragma once
#include <criterion/criterion.h>
#include <sys/resource.h>

static inline void no_threads_begin(struct rlimit *ret_before)
{
    cr_assert_eq(getrlimit(RLIMIT_STACK, ret_before), 0);
    cr_assert_eq(setrlimit(RLIMIT_STACK, &(struct rlimit){(rlim_t)1 << 47, ret_before->rlim_max}), 0);
}

static inline void no_threads_end(const struct rlimit *before)
{
    cr_assert_eq(setrlimit(RLIMIT_STACK, before), 0);
}

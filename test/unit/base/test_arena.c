#include "base/arena.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <stdalign.h>
#include <string.h>

TestSuite(arena, .fini = leak_guard);

Test(arena, gives_zeroed_aligned_memory_also_without_a_first_block)
{
    struct arena a;
    arena_init(&a, NULL, 0);
    for (size_t bytes = 0; bytes < 300; bytes++) {
        unsigned char *ptr = arena_alloc(&a, bytes);
        cr_assert_not_null(ptr);
        cr_assert_eq((uintptr_t)ptr % 16, 0);
        for (size_t i = 0; i < bytes; i++)
            cr_assert_eq(ptr[i], 0);
        memset(ptr, 0xff, bytes);
    }
    arena_finish(&a);
}

Test(arena, parts_do_not_overlap)
{
    alignas(16) char first[100] = {0};
    struct arena a;
    arena_init(&a, first, sizeof first);
    char *parts[50];
    for (int i = 0; i < 50; i++) {
        parts[i] = arena_alloc(&a, 700);
        memset(parts[i], i, 700);
    }
    for (int i = 0; i < 50; i++)
        for (int j = 0; j < 700; j++)
            cr_assert_eq(parts[i][j], i);
    arena_finish(&a);
}

Test(arena, uses_the_first_block_first_and_again_after_finish)
{
    alignas(16) char first[256] = {0};
    struct arena a;
    arena_init(&a, first, sizeof first);
    for (int round = 0; round < 3; round++) {
        char *ptr = arena_alloc(&a, 100);
        cr_assert_eq((void *)ptr, (void *)first);
        for (int i = 0; i < 100; i++)
            cr_assert_eq(ptr[i], 0);
        memset(ptr, 'x', 100);
        if (round % 2)
            arena_alloc(&a, 50 * 1000);
        arena_finish(&a);
    }
}

Test(arena, a_part_that_does_not_fit_with_its_padding_goes_elsewhere)
{
    alignas(16) char first[100] = {0};
    struct arena a;
    arena_init(&a, first, sizeof first);
    const char *ptr = arena_alloc(&a, 97);
    cr_assert(ptr + 97 <= first || ptr >= first + sizeof first);
    arena_finish(&a);
}

Test(arena, what_is_larger_than_a_block_has_one_of_its_own)
{
    enum { LARGE = 8 * 1024 };
    struct arena a;
    arena_init(&a, NULL, 0);
    for (size_t bytes = LARGE - 17; bytes < LARGE + 17; bytes++)
        memset(arena_alloc(&a, bytes), 'x', bytes);
    arena_finish(&a);
}

Test(arena, stops_at_a_size_that_is_none, .signal = SIGABRT)
{
    alignas(16) char first[64] = {0};
    struct arena a;
    arena_init(&a, first, sizeof first);
    arena_alloc(&a, SIZE_MAX);
}

Test(arena, finish_wipes_what_was_used)
{
    alignas(16) char first[64] = {0};
    struct arena a;
    arena_init(&a, first, sizeof first);
    arena_copy(&a, TEXT("password"));
    arena_finish(&a);
    for (size_t i = 0; i < 16; i++)
        cr_assert_eq(first[i], 0);

    memset(first, 'x', sizeof first);
    arena_copy(&a, TEXT("password"));
    arena_alloc(&a, 5000);
    arena_finish(&a);
    for (size_t i = 0; i < sizeof first; i++)
        cr_assert_eq(first[i], 0);
}

Test(arena, copy_ends_with_nul)
{
    struct arena a;
    arena_init(&a, NULL, 0);
    struct text copy = arena_copy(&a, (struct text){"abcdef", 3});
    cr_assert_eq(copy.len, 3);
    cr_assert_str_eq(copy.ptr, "abc");
    copy = arena_copy(&a, (struct text){NULL, 0});
    cr_assert_str_eq(copy.ptr, "");
    arena_finish(&a);
}

static char order[8];
static char one[] = "1", two[] = "2", three[] = "3";

static void note(void *arg)
{
    order[strlen(order)] = *(char *)arg;
}

Test(arena, deferred_calls_run_once_last_first)
{
    struct arena a;
    arena_init(&a, NULL, 0);
    arena_defer(&a, note, one);
    arena_defer(&a, note, two);
    arena_defer(&a, note, three);
    arena_finish(&a);
    cr_assert_str_eq(order, "321");
    arena_finish(&a);
    cr_assert_str_eq(order, "321");
}

static void defer_another(void *arg)
{
    arena_defer(arg, note, two);
    note(one);
}

Test(arena, a_deferred_call_may_defer_another)
{
    struct arena a;
    arena_init(&a, NULL, 0);
    arena_defer(&a, defer_another, &a);
    arena_finish(&a);
    cr_assert_str_eq(order, "12");
}

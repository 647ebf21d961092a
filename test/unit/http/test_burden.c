/* Bounds on what peers make the server hold. */
#include "leak_guard.h"

#include "http/burden_internal.h"

#include <criterion/criterion.h>

TestSuite(http_burden, .fini = leak_guard);

enum { LIGHT, HEAVY, LOADS, BOUND = 1000 };

static struct burdens burdens;
static struct load loads[LOADS];
static struct load *was_cut;

static void on_cut(struct load *load)
{
    was_cut = load;
    burden_forget(&burdens, load);
}

/* Whoever holds little must not pay for one who holds much, although it is its byte that passes the bound. */
Test(http_burden, who_passes_the_bound_is_spared_if_another_holds_most)
{
    for (enum burden_kind kind = 0; kind < BURDEN_KINDS; kind++) {
        uv_loop_t loop;

        cr_assert_eq(uv_loop_init(&loop), 0);
        burdens_init(&burdens, &loop, BOUND, on_cut);
        for (size_t i = 0; i < LOADS; i++)
            load_init(&loads[i], "192.0.2.1");
        was_cut = NULL;
        burden_set(&burdens, &loads[HEAVY], kind, BOUND - 10);
        burden_set(&burdens, &loads[LIGHT], kind, 10);
        cr_expect_null(was_cut, "the bound itself is allowed");
        burden_set(&burdens, &loads[LIGHT], kind, 11);
        cr_expect_eq(was_cut, &loads[HEAVY]);
        cr_expect_eq(burdens.kinds[kind].bytes, 11);
        burden_set(&burdens, &loads[LIGHT], kind, BOUND + 1);
        cr_expect_eq(was_cut, &loads[LIGHT]);
        cr_expect_eq(burdens.kinds[kind].bytes, 0);
        cr_assert_eq(uv_loop_close(&loop), 0);
    }
}

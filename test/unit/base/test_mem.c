#include "base/mem.h"

#include "address_sanitizer.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

TestSuite(mem, .fini = leak_guard);

Test(mem, alloc_gives_zeroes)
{
    unsigned char *bytes = mem_alloc(1000);
    for (size_t i = 0; i < 1000; i++)
        cr_assert_eq(bytes[i], 0);
    free(bytes);
}

Test(mem, nothing_is_still_a_pointer)
{
    void *none = mem_alloc(0);
    cr_assert_not_null(none);
    none = mem_resize(none, 0);
    cr_assert_not_null(none);
    free(none);
}

Test(mem, resize_keeps_the_content)
{
    char *text = mem_copy_text("abcdef", 3);
    text = mem_resize(text, 4000);
    cr_assert_str_eq(text, "abc");
    free(text);
}

Test(mem, copy_of_nothing_is_an_empty_string)
{
    char *text = mem_copy_text(NULL, 0);
    cr_assert_str_eq(text, "");
    free(text);
}

#ifndef HAS_ADDRESS_SANITIZER
Test(mem, running_out_aborts, .signal = SIGABRT)
{
    mem_alloc(SIZE_MAX / 2);
}
#endif

#include "base/mem.h"

#include "address_sanitizer.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(mem, .fini = leak_guard);

Test(mem, alloc_gives_zeroes)
{
    unsigned char *bytes = mem_alloc(1000);
    for (size_t i = 0; i < 1000; i++)
        cr_assert_eq(bytes[i], 0);
    free(bytes);
}

/* Whether the kernel may back the page at that address with a huge one: its mapping's VmFlags include "hg"
 * (proc(5)). */
static bool may_be_huge(const void *at)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/smaps", "r");
    bool is_its_mapping = false, may = false;
    cr_assert_not_null(maps);
    while (fgets(line, sizeof line, maps)) {
        char *end;
        uintptr_t from = strtoull(line, &end, 16);
        if (end != line && *end == '-')
            is_its_mapping = from <= (uintptr_t)at && (uintptr_t)at < strtoull(end + 1, NULL, 16);
        else if (is_its_mapping && strncmp(line, "VmFlags:", strlen("VmFlags:")) == 0)
            may = strstr(line, " hg") != NULL;
    }
    fclose(maps);
    return may;
}

Test(mem, what_is_large_is_zeroes_and_may_have_huge_pages)
{
    enum { BYTES = 64 << 20 };
    unsigned char *small = mem_alloc_large(1), *large = mem_alloc_large(BYTES);
    for (size_t i = 0; i < BYTES; i += 511)
        cr_assert_eq(large[i], 0);
    cr_assert_eq(*small, 0);
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0) {
        cr_assert(may_be_huge(large + BYTES / 2));
        cr_assert_not(may_be_huge(small));
    }
    free(small);
    free(large);
}

Test(mem, an_array_grows_as_it_is_filled)
{
    enum { ELEMENTS = 1000 };
    unsigned *numbers = NULL;
    size_t room = 0;
    for (unsigned i = 0; i < ELEMENTS; i++) {
        numbers = mem_grow(numbers, i, &room, sizeof *numbers);
        cr_assert_gt(room, i);
        numbers[i] = i;
    }
    cr_assert_lt(room, 2 * ELEMENTS);
    for (unsigned i = 0; i < ELEMENTS; i++)
        cr_assert_eq(numbers[i], i);
    free(numbers);
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

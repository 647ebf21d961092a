/* Must fail: proves that a leak in a Criterion test fails the run (leak_guard). Built with AddressSanitizer only. */
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(canary, .fini = leak_guard);

Test(canary, leaks)
{
    void *volatile lost = malloc(16);

    cr_assert_not_null(lost);
    lost = NULL;
}

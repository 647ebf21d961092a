/* Must fail: proves that undefined behaviour ends a Criterion test (-fno-sanitize-recover=all). */
#include <criterion/criterion.h>
#include <limits.h>

Test(canary, overflows)
{
    volatile int large = INT_MAX;

    large = large + 1;
    cr_assert(large != 0);
}

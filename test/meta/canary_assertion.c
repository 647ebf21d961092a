/* Must fail: what scripts/failed-tests says of an assertion. */
#include <criterion/criterion.h>

Test(canary, asserts)
{
    cr_assert_eq(1 + 1, 3, "the sum is wrong");
}

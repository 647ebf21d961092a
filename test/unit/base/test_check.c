#include "base/check.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include <signal.h>

TestSuite(check, .fini = leak_guard);

Test(check, goes_on_when_the_condition_holds)
{
    CHECK(1 + 1 == 2);
}

Test(check, aborts_when_the_condition_fails, .signal = SIGABRT)
{
    CHECK(1 + 1 == 3);
}

Test(check, aborts_where_nothing_can_be, .signal = SIGABRT)
{
    UNREACHABLE();
}

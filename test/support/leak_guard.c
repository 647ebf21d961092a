#include "leak_guard.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_LEAK_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HAS_LEAK_SANITIZER 1
#endif

#ifdef HAS_LEAK_SANITIZER
#include <sanitizer/lsan_interface.h>
#include <stdbool.h>
#include <stdlib.h>

static bool is_checked;

/* The sanitizer calls this before each of its checks. Criterion's runner itself sometimes leaks 48 bytes for a test
 * with a .timeout; none of our code runs there. BXFI_MAP is set in the processes that it starts for tests. The check at
 * the end of such a process would find no more than leak_guard() did, and costs as much again. */
int __lsan_is_turned_off(void)
{
    return is_checked || getenv("BXFI_MAP") == NULL;
}

void leak_guard(void)
{
    if (__lsan_do_recoverable_leak_check() != 0)
        abort(); /* a failing assertion in .fini would not fail the test */
    is_checked = true;
}
#else
void leak_guard(void)
{
}
#endif

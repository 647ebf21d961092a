/* Assertions that stay on in release builds: an authentication service stops rather than guesses. */
#pragma once
#include "base/attr.h"

#define CHECK(condition)                        \
    do {                                        \
        if (__builtin_expect(!(condition), 0))  \
            check_failed(__func__, #condition); \
    } while (0)

#define UNREACHABLE() check_failed(__func__, "unreachable")

/* Prints function and expression to stderr and aborts. */
NORETURN void check_failed(const char *function, const char *expression);

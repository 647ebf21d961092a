/* What the code claims about itself. A claim that fails ends the process, in release builds too: an authentication
 * service stops rather than guesses. The word says who has broken his promise:
 *
 *   CHECK        another library, or the system
 *   REQUIRE      the caller of this function
 *   ENSURE       this function
 *   INVARIANT    whoever changed this object last
 *   UNREACHABLE  whoever thought that nothing leads here
 *
 * Where a claim costs something that a benchmark sees, it has ALL_ in front: that one is made in debug, sanitizer and
 * simulation builds only (CHATELAINE_ALL_CLAIMS), and its condition must have no effect. A claim that repeats a type is
 * none. Moves between states have tables instead (base/machine.h). */
#pragma once
#include "base/attr.h"

#define CLAIM(kind, condition, text)            \
    do {                                        \
        if (__builtin_expect(!(condition), 0))  \
            check_failed(kind, __func__, text); \
    } while (0)

#ifdef CHATELAINE_ALL_CLAIMS
enum { CLAIMS_ALL = 1 };
#else
enum { CLAIMS_ALL = 0 };
#endif

#define CHECK(condition) CLAIM("check", condition, #condition)
#define REQUIRE(condition) CLAIM("requirement", condition, #condition)
#define ENSURE(condition) CLAIM("promise", condition, #condition)
#define INVARIANT(condition) CLAIM("invariant", condition, #condition)
#define UNREACHABLE() check_failed("check", __func__, "unreachable")

#define ALL_REQUIRE(condition) CLAIM("requirement", !CLAIMS_ALL || (condition), #condition)
#define ALL_ENSURE(condition) CLAIM("promise", !CLAIMS_ALL || (condition), #condition)
#define ALL_INVARIANT(condition) CLAIM("invariant", !CLAIMS_ALL || (condition), #condition)

/* Prints kind, function and expression to stderr and aborts. */
NORETURN void check_failed(const char *kind, const char *function, const char *expression);

#include "base/check.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(check, .fini = leak_guard);

Test(check, goes_on_when_the_condition_holds)
{
    CHECK(1 + 1 == 2);
}

Test(check, aborts_when_the_condition_fails, .signal = SIGABRT)
{
    CHECK(1 + 1 == 3);
}

Test(check, aborts_when_a_requirement_fails, .signal = SIGABRT)
{
    REQUIRE(1 + 1 == 3);
}

Test(check, aborts_when_a_promise_fails, .signal = SIGABRT)
{
    ENSURE(1 + 1 == 3);
}

Test(check, aborts_when_an_invariant_fails, .signal = SIGABRT)
{
    INVARIANT(1 + 1 == 3);
}

Test(check, makes_all_claims_in_a_debug_build, .signal = SIGABRT)
{
    ALL_INVARIANT(1 + 1 == 3);
}

/* The expression is told as it was written, not as macros make it. */
Test(check, tells_which_claim_failed)
{
    char line[256];
    int pipes[2], status;
    ssize_t got;

    cr_assert_eq(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        REQUIRE(line == NULL);
        _exit(0);
    }
    close(pipes[1]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    got = read(pipes[0], line, sizeof line - 1);
    close(pipes[0]);
    cr_assert_gt(got, 0);
    line[got] = '\0';
    cr_assert_not_null(strstr(line, "chatelaine: check failed in "), "%s", line);
    cr_assert_not_null(strstr(line, ": requirement: line == NULL\n"), "%s", line);
}

Test(check, aborts_where_nothing_can_be, .signal = SIGABRT)
{
    UNREACHABLE();
}

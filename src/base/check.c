#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void check_failed(const char *kind, const char *function, const char *expression)
{
    /* A single write(2): stdio's locks or the heap may be what is broken. */
    char line[512];
    int len = snprintf(line, sizeof line, "chatelaine: check failed in %s: %s: %s\n", function, kind, expression);
    size_t bytes = len < 0 ? 0 : (size_t)len < sizeof line ? (size_t)len : sizeof line - 1;
    ssize_t written = write(STDERR_FILENO, line, bytes);
    (void)written; /* if even this fails, nobody can be told */
    abort();
}

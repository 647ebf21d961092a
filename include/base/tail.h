/* Reads the lines of a file from its end, the last one first, in pieces. Reading blocks: do it on a thread of its own
 * (base/background.h). */
#pragma once
#include "base/attr.h"
#include "base/text.h"
#include <sys/types.h>

enum { TAIL_LINE_MAX_BYTES = 192 * 1024 }; /* longer lines are left out */

struct tail {
    int fd;            /* -1: closed */
    off_t left;        /* bytes in front of what was read */
    char *bytes;       /* the piece, at the end of its memory */
    size_t from, to;   /* what is left of it */
    bool is_inside;    /* of a line that is too long, whose beginning was not found yet */
    bool has_begun;    /* the newline that ends the last line was seen */
    uint64_t too_long; /* lines that were left out */
};

/* Opens a regular file as it is now; what is appended later is not read. 0, or an errno: EINVAL for what is no regular
 * file. Close it in either case. */
MUST_CHECK int tail_open(struct tail *tail, const char *path);
/* The line in front of the last one that was read, without its newline, valid until the next call. False: there is
 * none, or *ret_error is an errno. */
MUST_CHECK bool tail_next(struct tail *tail, struct text *ret_line, int *ret_error);
void tail_close(struct tail *tail);

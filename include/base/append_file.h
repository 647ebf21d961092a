/* A file that is only appended to, and that is meant by its path: a descriptor goes on working after the file was
 * removed, and what is written to it ends with the process. Everything here blocks. */
#pragma once
#include "base/attr.h"
#include "base/text.h"
#include <sys/types.h>

enum append_fate {
    APPEND_THERE, /* the path leads to the open file, with all that was written */
    APPEND_MOVED, /* it does not, but the file has another name: nothing of it is lost */
    APPEND_GONE,  /* the file has no name any more: it was removed or replaced, and all of it is lost */
    APPEND_CUT,   /* it is there, and shorter than what was written */
};

/* Opens it, and creates it (0600) if there is none; -1 with one sentence in ret_why, and errno, on failure. name: what
 * it is, for that sentence. Non-blocking, because a pipe that nobody reads must not stop the caller. is_own: it must be
 * a regular file; it is locked against other processes, and a new one's name survives a power cut. */
MUST_CHECK int append_file_open(const char *path, const char *name, bool is_own, struct buf *ret_why);
/* Whether append_file_open() would open it, as far as that shows without a change and without the lock. */
MUST_CHECK bool append_file_can_open(const char *path, const char *name, bool is_own, struct buf *ret_why);
/* The remedy for an errno, if its words do not say it: ". Sentence" without a full stop, or "". */
const char *append_file_hint(int error);
/* Where the file is: since which boot of which machine, in which folder, by which name. A copy of it on another
 * machine, or elsewhere on this one, has another place; a new file at the path has the same. */
void append_file_place(const char *path, struct buf *ret_place);
/* The fate of the file. least: bytes that must be there. *ret_bytes: bytes that are. */
enum append_fate append_file_look(const char *path, int fd, off_t least, off_t *ret_bytes);
/* Appends and syncs all of it. 0, or an errno: a part may stand there. */
MUST_CHECK int append_file_sync(int fd, struct text bytes);
/* Appends so many bytes from there on to ret_bytes. False: they cannot be read. */
MUST_CHECK bool append_file_read(int fd, off_t from, size_t count, struct buf *ret_bytes);

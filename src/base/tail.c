#include "base/tail.h"
#include "base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 * 1024, ROOM_BYTES = TAIL_LINE_MAX_BYTES + PIECE_BYTES };

int tail_open(struct tail *tail, const char *path)
{
    struct stat about;

    /* Non-blocking, because opening a pipe would wait for a writer. */
    *tail = (struct tail){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
    if (tail->fd < 0 || fstat(tail->fd, &about) != 0)
        return errno;
    if (!S_ISREG(about.st_mode))
        return EINVAL;
    tail->left = about.st_size;
    tail->bytes = mem_alloc(ROOM_BYTES);
    tail->from = tail->to = ROOM_BYTES;
    return 0;
}

void tail_close(struct tail *tail)
{
    if (tail->fd >= 0)
        close(tail->fd);
    free(tail->bytes);
    *tail = (struct tail){.fd = -1};
}

/* Puts the piece before in front of what is left. A line that has no room for it is too long. */
static int read_piece(struct tail *tail)
{
    size_t len = tail->to - tail->from, count = PIECE_BYTES, got = 0;

    if (len > TAIL_LINE_MAX_BYTES) {
        tail->is_inside = true;
        len = 0;
    }
    memmove(tail->bytes + ROOM_BYTES - len, tail->bytes + tail->from, len);
    tail->to = ROOM_BYTES;
    if ((off_t)count > tail->left)
        count = (size_t)tail->left;
    tail->from = ROOM_BYTES - len - count;
    tail->left -= (off_t)count;
    while (got < count) {
        ssize_t more = pread(tail->fd, tail->bytes + tail->from + got, count - got, tail->left + (off_t)got);

        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return more < 0 ? errno : EIO; /* somebody has cut the file */
        got += (size_t)more;
    }
    return 0;
}

/* Takes the last line off what was read. False: its beginning is farther in front. */
static bool take(struct tail *tail, struct text *ret_line)
{
    const char *newline = memrchr(tail->bytes + tail->from, '\n', tail->to - tail->from);
    size_t begin = newline ? (size_t)(newline - tail->bytes) + 1 : tail->from;

    if (!newline && tail->left > 0)
        return false;
    *ret_line = (struct text){tail->bytes + begin, tail->to - begin};
    tail->to = newline ? begin - 1 : tail->from;
    return true;
}

bool tail_next(struct tail *tail, struct text *ret_line, int *ret_error)
{
    *ret_error = 0;
    while (tail->left > 0 || tail->to > tail->from) {
        bool is_last = !tail->has_begun;

        if (!take(tail, ret_line)) {
            *ret_error = read_piece(tail);
            if (*ret_error != 0)
                return false;
            continue;
        }
        tail->has_begun = true;
        if (tail->is_inside) {
            tail->is_inside = false;
            tail->too_long++;
            continue;
        }
        if (!is_last || ret_line->len > 0)
            return true;
    }
    return false;
}

#include "ready_file.h"

#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { READY_MAX_BYTES = 1024 };

static bool write_file(const char *path, struct text content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0)
        return false;
    bool is_written = write(fd, content.ptr, content.len) == (ssize_t)content.len;
    return close(fd) == 0 && is_written;
}

bool ready_file_write(const char *path, const char *listen, const char *internal_listen, struct buf *ret_why)
{
    char temporary[PATH_MAX];
    struct buf out = BUF_FIXED(READY_MAX_BYTES);
    struct json_writer w = {.out = &out};

    json_object_begin(&w);
    json_put_number(&w, "pid", getpid());
    json_put_member(&w, "listen", text_of(listen));
    json_put_member(&w, "internal_listen", text_of(internal_listen));
    json_line_end(&w);

    int length = snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof temporary) {
        buf_append_str(ret_why, "the name of --ready-file is too long");
        return false;
    }
    if (write_file(temporary, buf_text(&out)) && rename(temporary, path) == 0)
        return true;
    buf_printf(ret_why, "cannot write --ready-file %s: %s", path, strerror(errno));
    unlink(temporary);
    return false;
}

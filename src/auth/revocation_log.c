#include "auth/revocation_log.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A newline first if one is missing, the time, two ids, two blanks, the newline. */
enum { LINE_MAX_BYTES = CLOCK_RFC3339_BYTES + 2 * ID_TEXT_BYTES + 4 };

struct revocation_log {
    char *path;
    int fd;
    bool is_torn; /* the file does not end with a newline: a crash or a full disk cut its last line */
};

/* Only a regular file can be inspected; a pipe has no partial line. */
static bool ends_torn(int fd)
{
    struct stat about;
    char last;

    return fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0 &&
           pread(fd, &last, 1, about.st_size - 1) == 1 && last != '\n';
}

bool revocation_log_reopen(struct revocation_log *log, struct buf *ret_why)
{
    /* Readable for ends_torn(). Non-blocking, because a pipe that nobody reads must not stop the loop. */
    int fd = open(log->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, S_IRUSR | S_IWUSR);

    if (fd < 0) {
        buf_printf(ret_why, "cannot open the revocation log %s: %s", log->path, strerror(errno));
        return false;
    }
    if (log->fd >= 0)
        close(log->fd);
    log->fd = fd;
    log->is_torn = ends_torn(fd);
    return true;
}

struct revocation_log *revocation_log_open(const char *path, struct buf *ret_why)
{
    struct revocation_log *log = mem_alloc(sizeof *log);

    log->path = mem_copy_text(path, strlen(path));
    log->fd = -1;
    if (revocation_log_reopen(log, ret_why))
        return log;
    revocation_log_close(log);
    return NULL;
}

void revocation_log_close(struct revocation_log *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    free(log->path);
    free(log);
}

int revocation_log_append(struct revocation_log *log, const struct key_record *key)
{
    char storage[LINE_MAX_BYTES], revoked[CLOCK_RFC3339_BYTES];
    struct buf line;
    ssize_t written;

    clock_print_rfc3339(key->revoked_ms, revoked);
    buf_init_fixed(&line, storage, sizeof storage);
    buf_printf(&line, "%s%s %s %s\n", log->is_torn ? "\n" : "", revoked, key->id.text, key->account.text);
    do
        written = write(log->fd, line.ptr, line.len);
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return errno;
    log->is_torn = (size_t)written < line.len && (written > 0 || log->is_torn);
    return (size_t)written < line.len ? ENOSPC : 0;
}

bool revocation_log_read(struct text line, struct id *ret_key)
{
    struct text time, id;

    return text_next(&line, ' ', &time) && time.len == CLOCK_RFC3339_BYTES - 1 && time.ptr[time.len - 1] == 'Z' &&
           text_next(&line, ' ', &id) && (id_parse(ID_KEY, id, ret_key) || id_parse(ID_DEVICE, id, ret_key));
}

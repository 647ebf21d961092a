#include "base/append_file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* So that the file's name survives a power cut. */
static bool sync_folder(const char *path)
{
    char *copy = mem_copy_text(path, strlen(path));
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    free(copy);
    return is_synced;
}

/* False with the sentence in ret_why, and errno. */
static bool make_own(int fd, const char *path, const char *name, struct buf *ret_why)
{
    struct stat about;

    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        errno = EINVAL;
        buf_printf(ret_why, "the %s %s must be a regular file", name, path);
    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        buf_printf(ret_why, "the %s %s is in use by another node: give each node a file of its own", name, path);
    } else if (about.st_size == 0 && !sync_folder(path)) {
        buf_printf(ret_why, "cannot sync the folder of the %s %s: %s", name, path, strerror(errno));
    } else {
        return true;
    }
    return false;
}

const char *append_file_hint(int error)
{
    return error == EROFS
               ? ". systemd lets a service write only in its own folders: choose one of these, or allow this "
                 "one by ReadWritePaths= in a drop-in"
               : "";
}

int append_file_open(const char *path, const char *name, bool is_own, struct buf *ret_why)
{
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, S_IRUSR | S_IWUSR), error;

    if (fd < 0) {
        error = errno;
        buf_printf(ret_why, "cannot open the %s %s: %s%s", name, path, strerror(error), append_file_hint(error));
    } else if (!is_own || make_own(fd, path, name, ret_why)) {
        return fd;
    } else {
        error = errno;
        close(fd);
    }
    errno = error;
    return -1;
}

/* 0, or the errno with which a file could not be created there. */
static int creation_error(const char *path)
{
    char *copy = mem_copy_text(path, strlen(path));
    int error = path[0] == '\0' ? ENOENT : faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;

    free(copy);
    return error;
}

bool append_file_can_open(const char *path, const char *name, bool is_own, struct buf *ret_why)
{
    struct stat about;
    int error = 0;

    if (stat(path, &about) != 0)
        error = errno == ENOENT ? creation_error(path) : errno;
    else if (S_ISDIR(about.st_mode))
        error = EISDIR;
    else if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0)
        error = errno;
    else if (is_own && !S_ISREG(about.st_mode)) {
        buf_printf(ret_why, "the %s %s must be a regular file", name, path);
        return false;
    }
    if (error != 0)
        buf_printf(ret_why, "cannot open the %s %s: %s%s", name, path, strerror(error), append_file_hint(error));
    return error == 0;
}

void append_file_place(const char *path, struct buf *ret_place)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = slash ? mem_copy_text(path, (size_t)(name - path)) : mem_copy_text(".", 1), boot[64] = "";
    struct stat about = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, boot, sizeof boot - 1) <= 0)
        (void)gethostname(boot, sizeof boot - 1);
    if (fd >= 0)
        close(fd);
    boot[strcspn(boot, "\n")] = '\0';
    (void)stat(folder, &about);
    free(folder);
    buf_printf(ret_place, "%s %jx:%jx %s", boot, (uintmax_t)about.st_dev, (uintmax_t)about.st_ino, name);
}

enum append_fate append_file_look(const char *path, int fd, off_t least, off_t *ret_bytes)
{
    struct stat open_file, there;

    *ret_bytes = least;
    if (fstat(fd, &open_file) != 0)
        return APPEND_GONE;
    *ret_bytes = open_file.st_size;
    if (open_file.st_nlink == 0)
        return APPEND_GONE;
    if (S_ISREG(open_file.st_mode) && open_file.st_size < least)
        return APPEND_CUT;
    if (stat(path, &there) != 0 || there.st_dev != open_file.st_dev || there.st_ino != open_file.st_ino)
        return APPEND_MOVED;
    return APPEND_THERE;
}

int append_file_sync(int fd, struct text bytes)
{
    size_t done = 0;

    while (done < bytes.len) {
        ssize_t written = write(fd, bytes.ptr + done, bytes.len - done);

        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            return written == 0 ? ENOSPC : errno;
    }
    return fdatasync(fd) == 0 ? 0 : errno;
}

bool append_file_read(int fd, off_t from, size_t count, struct buf *ret_bytes)
{
    char *room = buf_reserve(ret_bytes, count);
    size_t done = 0;

    while (room && done < count) {
        ssize_t got = pread(fd, room + done, count - done, from + (off_t)done);

        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    ret_bytes->len += done;
    return room;
}

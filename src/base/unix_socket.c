#include "base/unix_socket.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096, PATH_BYTES = sizeof(((struct sockaddr_un *)NULL)->sun_path) };

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, path, strlen(path));
    return address;
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* A socket file that nobody listens on is left over from a process that died. */
static bool is_stale(const char *path)
{
    struct sockaddr_un address = address_of(path);
    struct stat file;
    bool is_refused;
    int fd;

    if (lstat(path, &file) != 0 || !S_ISSOCK(file.st_mode))
        return false;
    fd = open_socket();
    if (fd < 0)
        return false;
    is_refused = connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
    close(fd);
    return is_refused;
}

/* Two processes that start at once must not both find the file stale: the second would remove the first one's. Held
 * from the look at the file until somebody listens. -1: no lock, because the folder cannot be read. */
static int lock_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_BYTES] = ".";
    int fd;

    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
        continue;
    return fd;
}

static bool bind_file(int fd, const char *path, mode_t mode)
{
    struct sockaddr_un address = address_of(path);
    /* Set afterwards by its name, the mode could hit another file. */
    mode_t before = mode == UNIX_SOCKET_MODE_OF_UMASK ? 0 : umask(~mode & 0777);
    bool is_bound = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    int error = errno;

    if (mode != UNIX_SOCKET_MODE_OF_UMASK)
        umask(before);
    errno = error;
    return is_bound;
}

static int listen_locked(const char *path, mode_t mode, int *ret_fd)
{
    int fd, error;

    if (is_stale(path) && unlink(path) != 0)
        return -errno;
    fd = open_socket();
    if (fd >= 0 && bind_file(fd, path, mode)) {
        if (listen(fd, BACKLOG) == 0) {
            *ret_fd = fd;
            return 0;
        }
        unlink(path);
    }
    error = errno;
    if (fd >= 0)
        close(fd);
    return -error;
}

int unix_socket_listen(const char *path, mode_t mode, int *ret_fd)
{
    int folder, result;

    if (strlen(path) >= PATH_BYTES)
        return -ENAMETOOLONG;
    folder = lock_folder(path);
    result = listen_locked(path, mode, ret_fd);
    if (folder >= 0)
        close(folder);
    return result;
}

#include "base/unix_socket.h"
#include "base/check.h"
#include "base/loss.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 1024, PATH_BYTES = sizeof(((struct sockaddr_un *)NULL)->sun_path) };

/* False: there is no socket at the path. */
static bool look_at(const char *path, struct stat *ret_file)
{
    return lstat(path, ret_file) == 0 && S_ISSOCK(ret_file->st_mode);
}

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

    if (!look_at(path, &file))
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

static bool bind_file(int fd, const char *path)
{
    struct sockaddr_un address = address_of(path);
    /* Set afterwards by its name, the mode could hit another file. */
    mode_t before = umask(~UNIX_SOCKET_MODE & 0777);
    bool is_bound = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    int error = errno;

    umask(before);
    errno = error;
    return is_bound;
}

/* Sets all but the path. */
static int listen_locked(struct unix_socket *socket, const char *path)
{
    struct stat file;
    int fd, error;

    if (is_stale(path) && unlink(path) != 0)
        return -errno;
    fd = open_socket();
    if (fd >= 0 && bind_file(fd, path)) {
        if (listen(fd, BACKLOG) == 0 && look_at(path, &file)) {
            socket->fd = fd;
            socket->device = file.st_dev;
            socket->inode = file.st_ino;
            return 0;
        }
        unlink(path);
    }
    error = errno;
    if (fd >= 0)
        close(fd);
    return -error;
}

static int listen_at(struct unix_socket *socket, const char *path)
{
    int folder = lock_folder(path), result = listen_locked(socket, path);

    if (folder >= 0)
        close(folder);
    return result;
}

int unix_socket_listen(struct unix_socket *ret_socket, const char *path)
{
    int result;

    if (strlen(path) >= PATH_BYTES)
        return -ENAMETOOLONG;
    *ret_socket = (struct unix_socket){.fd = -1};
    result = listen_at(ret_socket, path);
    if (result == 0)
        memcpy(ret_socket->path, path, strlen(path));
    return result;
}

bool unix_socket_is_lost(const struct unix_socket *socket)
{
    struct stat file;

    return !look_at(socket->path, &file) || file.st_dev != socket->device || file.st_ino != socket->inode;
}

void unix_socket_listen_again(struct unix_socket *socket)
{
    struct unix_socket next = {.fd = -1};
    int result = listen_at(&next, socket->path);

    if (!socket->is_loss_told)
        LOSS_TELL(LOSS_SOCKET, log_str("path", socket->path), log_str("why", result == 0 ? "-" : strerror(-result)));
    socket->is_loss_told = result != 0;
    if (result != 0)
        return;
    CHECK(dup3(next.fd, socket->fd, O_CLOEXEC) == socket->fd);
    close(next.fd);
    socket->device = next.device;
    socket->inode = next.inode;
    LOG(LOG_INFO, "listens at the path of a Unix socket again", log_str("path", socket->path));
}

void unix_socket_close(struct unix_socket *socket)
{
    if (socket->fd < 0)
        return;
    if (!unix_socket_is_lost(socket))
        unlink(socket->path);
    close(socket->fd);
    socket->fd = -1;
}

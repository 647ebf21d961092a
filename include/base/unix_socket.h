/* Unix sockets with a name in the file system (unix(7)), which stay reachable by it. Loop thread only. */
#pragma once
#include "base/attr.h"
#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

/* Its owner and group may connect, and so can try keys, or learn which are accepted. */
enum { UNIX_SOCKET_MODE = 0660 };

/* All is private, but for fd. Zero, with fd -1: it does not listen. */
struct unix_socket {
    int fd;
    dev_t device; /* of the file */
    ino_t inode;
    bool is_loss_told;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

/* Listens on a stream socket, whose file gets UNIX_SOCKET_MODE whatever the umask is. A file that nobody listens on is
 * replaced. 0, or a negative errno: -EADDRINUSE if somebody listens there, -ENAMETOOLONG. */
MUST_CHECK int unix_socket_listen(struct unix_socket *ret_socket, const char *path);
/* Whether the path no longer leads to the socket, because somebody removed or replaced its file. Ask each second. */
bool unix_socket_is_lost(const struct unix_socket *socket);
/* If so: listens at the path again, with the same descriptor, which nothing may poll meanwhile. Connections that wait
 * for accept() are closed. Tells LOSS_SOCKET. If somebody else listens there, or there is no folder, the next call may
 * succeed. */
void unix_socket_listen_again(struct unix_socket *socket);
/* Removes the file, unless it is another one by now. */
void unix_socket_close(struct unix_socket *socket);

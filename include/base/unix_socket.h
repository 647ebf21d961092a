/* Unix sockets with a name in the file system (unix(7)). */
#pragma once
#include "base/attr.h"
#include <sys/types.h>

/* Listens on a stream socket, in ret_fd. Its file gets this mode whatever the umask is, or, with
 * UNIX_SOCKET_MODE_OF_UMASK, the usual one. A file that nobody listens on is replaced. Close the descriptor and remove
 * the file when done. 0, or a negative errno: -EADDRINUSE if somebody listens there, -ENAMETOOLONG. */
enum { UNIX_SOCKET_MODE_OF_UMASK = 0 };
MUST_CHECK int unix_socket_listen(const char *path, mode_t mode, int *ret_fd);

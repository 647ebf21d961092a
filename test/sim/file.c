/* Files of the C library on sockets of ours: it would ask the system by itself. */
#include "kernel_internal.h"
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int fd_of(void *cookie)
{
    return (int)(intptr_t)cookie;
}

static ssize_t read_some(void *cookie, char *ret_bytes, size_t room)
{
    return read(fd_of(cookie), ret_bytes, room);
}

static ssize_t write_some(void *cookie, const char *bytes, size_t len)
{
    return write(fd_of(cookie), bytes, len);
}

static int close_it(void *cookie)
{
    return close(fd_of(cookie));
}

FILE *fdopen(int fd, const char *mode)
{
    static const cookie_io_functions_t FUNCTIONS = {.read = read_some, .write = write_some, .close = close_it};

    FILE *file;

    if (!sim_socket_of(fd))
        return SYSTEM(fdopen)(fd, mode);
    file = fopencookie((void *)(intptr_t)fd, mode, FUNCTIONS);
    if (file)
        file->_fileno = fd; /* for fileno() */
    return file;
}

#include "socket_internal.h"

#include <errno.h>
#include <sys/socket.h>

ssize_t socket_receive(const uv_stream_t *stream, char *ret_bytes, size_t room)
{
    uv_os_fd_t fd;
    ssize_t taken;
    int result = uv_fileno((const uv_handle_t *)stream, &fd);

    if (result != 0)
        return result;
    do {
        taken = recv(fd, ret_bytes, room, MSG_DONTWAIT);
    } while (taken < 0 && errno == EINTR);
    return taken < 0 ? uv_translate_sys_error(errno) : taken;
}

ssize_t socket_send(const uv_stream_t *stream, struct text bytes)
{
    uv_os_fd_t fd;
    ssize_t taken;
    int result = uv_fileno((const uv_handle_t *)stream, &fd);

    if (result != 0)
        return result;
    if (uv_stream_get_write_queue_size(stream) > 0)
        return UV_EAGAIN;
    do {
        taken = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (taken < 0 && errno == EINTR);
    return taken < 0 ? uv_translate_sys_error(errno) : taken;
}

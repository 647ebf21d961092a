/* Descriptors of the system that travel with bytes over a Unix socket (SCM_RIGHTS): those of one message at a time. */
#include "base/check.h"
#include "socket_internal.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct cmsghdr *rights_of(const struct msghdr *message, size_t *ret_count)
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);

    *ret_count = 0;
    if (!header)
        return NULL;
    CHECK(header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS);
    *ret_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    return header;
}

void sim_rights_sent(struct sim_socket *to, const struct msghdr *message)
{
    size_t count;
    const struct cmsghdr *header = rights_of(message, &count);
    int fds[SIM_RIGHTS_MAX];

    if (!to || count == 0)
        return;
    CHECK(to->is_unix && to->right_count == 0 && count <= SIM_RIGHTS_MAX);
    memcpy(fds, CMSG_DATA(header), count * sizeof *fds);
    for (size_t i = 0; i < count; i++) {
        CHECK(!sim_socket_of(fds[i]));
        to->rights[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        CHECK(to->rights[i] >= 0);
    }
    to->right_count = count;
}

void sim_rights_drop(struct sim_socket *socket)
{
    while (socket->right_count > 0)
        close(socket->rights[--socket->right_count]);
}

/* Whoever asks for bytes alone loses the descriptors, as on Linux. */
void sim_rights_taken(struct sim_socket *socket, struct msghdr *message)
{
    const size_t count = socket->right_count, bytes = CMSG_LEN(count * sizeof(int));

    if (count == 0 || message->msg_controllen < bytes) {
        message->msg_flags |= count > 0 ? MSG_CTRUNC : 0;
        message->msg_controllen = 0;
        sim_rights_drop(socket);
        return;
    }
    *(struct cmsghdr *)message->msg_control =
        (struct cmsghdr){.cmsg_len = bytes, .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA((struct cmsghdr *)message->msg_control), socket->rights, count * sizeof *socket->rights);
    message->msg_controllen = CMSG_SPACE(count * sizeof(int)) < message->msg_controllen
                                  ? CMSG_SPACE(count * sizeof(int))
                                  : message->msg_controllen;
    for (size_t i = 0; sim_world && i < count; i++)
        sim_world->opened(socket->rights[i]);
    socket->right_count = 0;
}

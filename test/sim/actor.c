/* Ends of connections without a process. */
#include "actor.h"
#include "base/check.h"
#include "socket_internal.h"
#include <arpa/inet.h>
#include <stdlib.h>

static struct sim_socket *make(struct sim_host *host, const struct sim_actor *actor, void *arg)
{
    struct sim_socket *socket = sim_socket_make(-1, false, host);

    socket->actor = actor;
    socket->actor_arg = arg;
    return socket;
}

static struct sockaddr_storage address_of(struct in_addr ip, uint16_t port)
{
    struct sockaddr_storage address = {0};

    *(struct sockaddr_in *)&address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = ip, .sin_port = htons(port)};
    return address;
}

struct sim_socket *sim_actor_listen(struct sim_host *host, uint16_t port, const struct sim_actor *actor, void *arg)
{
    struct sim_socket *socket = make(host, actor, arg);

    socket->address = address_of(host->ip, port);
    sim_begin_to_listen(socket, SOMAXCONN);
    return socket;
}

void sim_actor_take(int fd, const struct sim_actor *actor, void *arg)
{
    struct sim_socket *socket = sim_socket_of(fd);

    CHECK(socket && socket->state == SIM_LISTENING && socket->waits == 0);
    socket->actor = actor;
    socket->actor_arg = arg;
}

struct sim_socket *sim_actor_connect(struct sim_host *host, struct in_addr ip, uint16_t port,
                                     const struct sim_actor *actor, void *arg)
{
    const struct sockaddr_storage address = address_of(ip, port);
    struct sim_socket *socket = make(host, actor, arg);

    CHECK(!host->is_off);
    sim_begin_to_connect(socket, &address);
    return socket;
}

void sim_actor_is(struct sim_socket *socket, void *arg)
{
    socket->actor_arg = arg;
}

size_t sim_actor_send_some(struct sim_socket *socket, const char *bytes, size_t length)
{
    size_t sent;

    if (!socket->host && !socket->peer)
        return length;
    CHECK(socket->actor && socket->state == SIM_CONNECTED && !socket->has_ended);
    if (!socket->peer) {
        sim_send_to_nobody(socket, sim_now_ns());
        return length;
    }
    sent = sim_send(socket, (struct text){bytes, length});
    if (sent < length)
        socket->peer->was_full = true;
    return sent;
}

bool sim_actor_send(struct sim_socket *socket, const char *bytes, size_t length)
{
    if (socket->peer && length > sim_room(socket->peer)) {
        CHECK(length <= socket->peer->room); /* it would never be sent */
        socket->peer->was_full = true;
        return false;
    }
    return sim_actor_send_some(socket, bytes, length) == length;
}

void sim_actor_end(struct sim_socket *socket)
{
    CHECK(socket->actor && socket->state == SIM_CONNECTED && !socket->has_ended);
    socket->has_ended = true;
    if (socket->peer)
        sim_convey(socket->peer, socket->host, SIM_END, (struct text){NULL, 0});
}

bool sim_actor_waits(const struct sim_socket *socket)
{
    return socket->holds || sim_event_waits(&socket->resumes);
}

static void tell_end(struct sim_socket *socket)
{
    socket->knows_of_end = true;
    if (socket->actor->ended) {
        socket->actor->ended(socket, socket->actor_arg);
        return;
    }
    socket->actor->closed(socket, socket->actor_arg);
    sim_socket_end(socket);
}

/* Bytes first: an end that came after them has its turn afterwards. */
static void resume(struct sim_event *resumes)
{
    struct sim_socket *socket = LIST_ENTRY(resumes, struct sim_socket, resumes);
    const size_t len = sim_unread(socket), taken = socket->taken;
    char *input = socket->input;

    if (len == 0) {
        tell_end(socket);
        return;
    }
    socket->input = NULL;
    socket->input_len = socket->input_room = socket->taken = 0;
    if (socket->is_ended)
        sim_event_in(resumes, 0);
    sim_tell_room(socket);
    socket->actor->received(socket, socket->actor_arg, input + taken, len);
    free(input);
}

void sim_actor_hold(struct sim_socket *socket, bool holds)
{
    CHECK(socket->actor);
    socket->holds = holds;
    socket->resumes.run = resume;
    if (holds)
        sim_event_cancel(&socket->resumes);
    else if (sim_unread(socket) > 0 || (socket->is_ended && !socket->knows_of_end))
        sim_event_in(&socket->resumes, 0);
}

void sim_tell_actor(struct sim_socket *to, enum sim_word word, struct text bytes)
{
    const struct sim_actor *actor = to->actor;

    switch (word) {
    case SIM_WELCOME:
        actor->connected(to, to->actor_arg);
        return;
    case SIM_BYTES:
        if (!sim_actor_waits(to))
            actor->received(to, to->actor_arg, bytes.ptr, bytes.len);
        return;
    case SIM_ROOM:
        if (actor->has_room)
            actor->has_room(to, to->actor_arg);
        return;
    case SIM_END:
        if (!sim_actor_waits(to))
            tell_end(to);
        return;
    case SIM_RESET:
    case SIM_REFUSAL:
        actor->closed(to, to->actor_arg);
        sim_socket_end(to);
        return;
    case SIM_KNOCK:
    case SIM_ASK:
    default:
        UNREACHABLE();
    }
}

void sim_actor_close(struct sim_socket *socket)
{
    CHECK(socket->actor);
    sim_socket_end(socket);
}

void sim_actor_break(struct sim_socket *socket)
{
    socket->resets = true;
    sim_actor_close(socket);
}

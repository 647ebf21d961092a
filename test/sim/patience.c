/* What Linux does by default about a peer that does not answer: a connection is given up, with ETIMEDOUT, when its
 * knock has not been answered for CONNECT_S; when nothing was heard for SEND_S since bytes were sent; or, with
 * SO_KEEPALIVE, when all questions after a silence have not been answered. */
#include "socket_internal.h"
#include "actor.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

/* tcp_syn_retries 6 and tcp_retries2 15 */
enum { CONNECT_S = 127, SEND_S = 924, NS_PER_S = 1000 * 1000 * 1000 };
enum { IDLE_S = 7200, INTERVAL_S = 75, COUNT = 9 };

static uint64_t after(uint64_t ns, int seconds)
{
    return ns + (uint64_t)seconds * NS_PER_S;
}

/* Bytes that nobody has acknowledged. UINT64_MAX: there are none. */
static uint64_t waits_since(const struct sim_socket *socket)
{
    enum sim_word last;

    if (socket->peer)
        return sim_flying_since(socket->peer);
    if (!socket->patience.asked_ns || !sim_last_flying(socket, &last))
        return UINT64_MAX;
    return last == SIM_ASK || last == SIM_RESET ? socket->patience.asked_ns : UINT64_MAX;
}

static uint64_t end_of_patience(const struct sim_socket *socket)
{
    const struct sim_patience *patience = &socket->patience;
    const uint64_t since_ns = waits_since(socket);

    if (socket->state == SIM_CONNECTING)
        return after(patience->heard_ns, CONNECT_S);
    if (socket->state != SIM_CONNECTED || socket->error || (socket->has_ended && socket->is_ended))
        return UINT64_MAX;
    if (since_ns != UINT64_MAX)
        return after(since_ns > patience->heard_ns ? since_ns : patience->heard_ns, SEND_S);
    if (!patience->probes)
        return UINT64_MAX;
    return patience->unanswered > 0 ? after(patience->probed_ns, patience->interval_s)
                                    : after(patience->heard_ns, patience->idle_s);
}

/* The peer does not hear of it: what it still sends is answered by a reset, once that arrives. */
static void leave(struct sim_socket *socket)
{
    struct sim_socket *peer = socket->peer;
    const uint64_t asked_ns = sim_flying_since(socket);

    sim_drop_flying(socket);
    if (!peer)
        return;
    socket->peer = peer->peer = NULL;
    sim_drop_flying(peer);
    if (asked_ns != UINT64_MAX)
        sim_send_to_nobody(peer, asked_ns);
}

static void give_up(struct sim_socket *socket)
{
    leave(socket);
    if (socket->actor) {
        socket->actor->closed(socket, socket->actor_arg);
        sim_socket_end(socket);
        return;
    }
    if (socket->state == SIM_CONNECTING)
        socket->state = SIM_FRESH;
    socket->error = ETIMEDOUT;
    socket->is_ended = socket->has_ended = true;
    sim_epoll_notify(socket, SIM_ANY);
}

/* A question, which is answered at once, or not at all. */
static void probe(struct sim_socket *socket)
{
    struct sim_patience *patience = &socket->patience;

    if (!sim_is_cut(socket->host, socket->peer_host) && !sim_is_cut(socket->peer_host, socket->host)) {
        sim_patience_heard(socket);
        if (!socket->peer && !socket->is_ended)
            sim_send_to_nobody(socket, sim_now_ns());
    } else if (patience->unanswered < patience->count) {
        patience->unanswered++;
        patience->probed_ns = sim_now_ns();
    } else {
        give_up(socket);
        return;
    }
    sim_patience_begin(socket);
}

static void look(struct sim_event *looks)
{
    struct sim_socket *socket = LIST_ENTRY(looks, struct sim_socket, patience.looks);
    const uint64_t end_ns = end_of_patience(socket);

    if (end_ns > sim_now_ns())
        sim_patience_begin(socket);
    else if (socket->state == SIM_CONNECTING || waits_since(socket) != UINT64_MAX)
        give_up(socket);
    else
        probe(socket);
}

void sim_patience_init(struct sim_patience *patience)
{
    *patience = (struct sim_patience){.looks.run = look, .idle_s = IDLE_S, .interval_s = INTERVAL_S, .count = COUNT};
}

void sim_patience_begin(struct sim_socket *socket)
{
    const uint64_t end_ns = end_of_patience(socket);

    if (end_ns == UINT64_MAX)
        sim_event_cancel(&socket->patience.looks);
    else
        sim_event_at(&socket->patience.looks, end_ns);
}

void sim_patience_heard(struct sim_socket *socket)
{
    socket->patience.heard_ns = sim_now_ns();
    socket->patience.unanswered = 0;
}

void sim_patience_set(struct sim_socket *socket, int level, int name, int value)
{
    struct sim_patience *patience = &socket->patience;

    if (level == SOL_SOCKET && name == SO_KEEPALIVE)
        patience->probes = value != 0;
    else if (level == IPPROTO_TCP && name == TCP_KEEPIDLE)
        patience->idle_s = value;
    else if (level == IPPROTO_TCP && name == TCP_KEEPINTVL)
        patience->interval_s = value;
    else if (level == IPPROTO_TCP && name == TCP_KEEPCNT)
        patience->count = value;
    else
        return;
    sim_patience_begin(socket);
}

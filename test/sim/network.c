/* Hosts, links, and what is on its way: a queue for each socket that it is to arrive at. */
#include "network.h"
#include "actor.h"
#include "base/check.h"
#include "base/mem.h"
#include "socket_internal.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HEAL: what was lost is sent again within this time. AGAIN: so long after a knock that a listener has not taken. One
 * piece in SPLIT_ONE_IN arrives in two, half of those after one byte. */
enum {
    HEAL_NS = 200 * 1000 * 1000,
    AGAIN_NS = 1000 * 1000 * 1000,
    SPLIT_ONE_IN = 8,
    PPM = 1000 * 1000,
    FIRST_PORT = 32768
};

struct link {
    uint64_t least_ns, most_ns, lag_most_ns;
    unsigned lag_turn; /* grows when lags are drawn again */
    bool is_cut;
};

struct segment {
    struct list of_socket;
    uint64_t sent_ns, at_ns;
    struct sim_host *from;
    enum sim_word word;
    size_t len;
    char *bytes;
};

static struct sim_host *hosts[SIM_HOSTS_MAX];
static unsigned host_count;
static struct link links[SIM_HOSTS_MAX][SIM_HOSTS_MAX];

void sim_network_begin(void)
{
    while (host_count > 0) {
        CHECK(list_empty(&hosts[--host_count]->sockets));
        free(hosts[host_count]);
    }
    memset(links, 0, sizeof links);
}

struct sim_host *sim_host_new(const char *name, const char *ip)
{
    struct sim_host *host = mem_alloc(sizeof *host);

    CHECK(host_count < SIM_HOSTS_MAX);
    *host = (struct sim_host){.number = host_count, .next_port = FIRST_PORT};
    snprintf(host->name, sizeof host->name, "%s", name);
    CHECK(inet_pton(AF_INET, ip, &host->ip) == 1 && !sim_host_at(host->ip));
    list_init(&host->sockets);
    hosts[host_count++] = host;
    return host;
}

struct sim_host *sim_host_at(struct in_addr ip)
{
    for (unsigned i = 0; i < host_count; i++)
        if (hosts[i]->ip.s_addr == ip.s_addr)
            return hosts[i];
    return NULL;
}

/* What is on its way */

bool sim_is_cut(const struct sim_host *from, const struct sim_host *to)
{
    return links[from->number][to->number].is_cut || from->is_off || to->is_off;
}

static struct segment *first_of(struct sim_socket *socket)
{
    struct list *node = list_first(&socket->flying);

    return node ? LIST_ENTRY(node, struct segment, of_socket) : NULL;
}

bool sim_last_flying(const struct sim_socket *socket, enum sim_word *ret_word)
{
    if (list_empty(&socket->flying))
        return false;
    *ret_word = LIST_ENTRY(socket->flying.prev, struct segment, of_socket)->word;
    return true;
}

uint64_t sim_flying_since(const struct sim_socket *socket)
{
    for (struct list *node = socket->flying.next; node != &socket->flying; node = node->next) {
        const struct segment *segment = LIST_ENTRY(node, struct segment, of_socket);

        if (segment->word == SIM_BYTES)
            return segment->sent_ns;
    }
    return UINT64_MAX;
}

/* Where it arrives: what is from the socket itself, at the host that it is for. */
static const struct sim_host *end_of(const struct sim_socket *socket, const struct segment *segment)
{
    return segment->word == SIM_KNOCK || segment->word == SIM_ASK ? socket->peer_host : socket->host;
}

static void await(struct sim_socket *socket)
{
    const struct segment *segment = first_of(socket);

    if (!segment || sim_is_cut(segment->from, end_of(socket, segment)))
        sim_event_cancel(&socket->arrival);
    else
        sim_event_at(&socket->arrival, segment->at_ns);
}

static void segment_free(struct segment *segment)
{
    list_remove(&segment->of_socket);
    free(segment->bytes);
    free(segment);
}

/* The first part arrives, the others a moment later. */
static struct segment *split(struct sim_socket *socket, struct segment *segment)
{
    struct segment *first = mem_alloc(sizeof *first);

    *first = *segment;
    list_init(&first->of_socket);
    first->len = 1 + (size_t)sim_draw_below(sim_draw_below(2) ? segment->len - 1 : 1);
    first->bytes = mem_copy_text(segment->bytes, first->len);
    memmove(segment->bytes, segment->bytes + first->len, segment->len -= first->len);
    segment->at_ns = sim_now_ns() + sim_draw_below(1 + links[segment->from->number][socket->host->number].most_ns);
    return first;
}

static void arrive(struct sim_event *arrival)
{
    struct sim_socket *socket = LIST_ENTRY(arrival, struct sim_socket, arrival);
    struct segment *segment = first_of(socket);

    if (segment->len > 1 && sim_draw_below(SPLIT_ONE_IN) == 0)
        segment = split(socket, segment);
    else
        list_remove(&segment->of_socket);
    socket->flying_bytes -= segment->len;
    await(socket);
    sim_word_arrived(socket, segment->word, (struct text){segment->bytes, segment->len});
    segment_free(segment);
}

static uint64_t lag_of(struct sim_socket *to, const struct link *link)
{
    if (to->lag_turn != link->lag_turn) {
        to->lag_turn = link->lag_turn;
        to->lag_ns = link->lag_most_ns > 0 && sim_draw_below(2) ? sim_draw_below(link->lag_most_ns) : 0;
    }
    return to->lag_ns;
}

static uint64_t arrival_of(struct sim_socket *to, const struct sim_host *from, const struct sim_host *at)
{
    const struct link *link = &links[from->number][at->number];
    const uint64_t lag_ns = at == to->host ? lag_of(to, link) : 0;
    const uint64_t at_ns = sim_now_ns() + lag_ns + sim_draw_between(link->least_ns, link->most_ns);
    const struct segment *last =
        list_empty(&to->flying) ? NULL : LIST_ENTRY(to->flying.prev, struct segment, of_socket);

    return last && last->at_ns > at_ns ? last->at_ns : at_ns;
}

/* What is sent at one moment arrives together. */
static bool is_added_to_last(struct sim_socket *to, struct text bytes)
{
    struct segment *last = LIST_ENTRY(to->flying.prev, struct segment, of_socket);

    if (list_empty(&to->flying) || last->word != SIM_BYTES || last->sent_ns != sim_now_ns())
        return false;
    last->bytes = mem_resize(last->bytes, last->len + bytes.len);
    memcpy(last->bytes + last->len, bytes.ptr, bytes.len);
    last->len += bytes.len;
    return true;
}

static void fly(struct sim_socket *to, struct segment *segment)
{
    list_append(&to->flying, &segment->of_socket);
    to->arrival.run = arrive;
    if (!sim_event_waits(&to->arrival))
        await(to);
}

void sim_knock_again(struct sim_socket *client)
{
    struct segment *segment = mem_alloc(sizeof *segment);

    *segment = (struct segment){.sent_ns = sim_now_ns(), .from = client->host, .word = SIM_KNOCK};
    segment->at_ns = arrival_of(client, client->host, client->peer_host) + AGAIN_NS;
    fly(client, segment);
}

void sim_convey(struct sim_socket *to, struct sim_host *from, enum sim_word word, struct text bytes)
{
    struct segment *segment;

    if (!from || !to->host || to->is_unix) {
        sim_word_arrived(to, word, bytes);
        return;
    }
    if (from->is_off)
        return;
    to->flying_bytes += bytes.len;
    if (word == SIM_BYTES && is_added_to_last(to, bytes))
        return;
    segment = mem_alloc(sizeof *segment);
    *segment = (struct segment){.sent_ns = sim_now_ns(), .from = from, .word = word, .len = bytes.len};
    segment->bytes = bytes.len > 0 ? mem_copy_text(bytes.ptr, bytes.len) : NULL;
    segment->at_ns = arrival_of(to, from, end_of(to, segment));
    fly(to, segment);
}

void sim_drop_flying(struct sim_socket *socket)
{
    while (!list_empty(&socket->flying))
        segment_free(first_of(socket));
    socket->flying_bytes = 0;
    sim_event_cancel(&socket->arrival);
}

/* Links */

void sim_link_delay(const struct sim_host *from, const struct sim_host *to, uint64_t least_ns, uint64_t most_ns)
{
    CHECK(least_ns <= most_ns);
    links[from->number][to->number].least_ns = least_ns;
    links[from->number][to->number].most_ns = most_ns;
}

static bool is_held(const struct sim_socket *socket)
{
    return !list_empty(&socket->flying) && !sim_event_waits(&socket->arrival);
}

/* What was held is sent again, and what was on its way is held. */
static void look_again(void)
{
    for (unsigned i = 0; i < host_count; i++)
        for (struct list *node = hosts[i]->sockets.next; node != &hosts[i]->sockets; node = node->next) {
            struct sim_socket *socket = LIST_ENTRY(node, struct sim_socket, of_host);

            if (is_held(socket) && first_of(socket)->at_ns < sim_now_ns() + HEAL_NS)
                first_of(socket)->at_ns = sim_now_ns() + sim_draw_below(HEAL_NS);
            await(socket);
        }
}

void sim_link_cut(const struct sim_host *from, const struct sim_host *to, bool cut)
{
    links[from->number][to->number].is_cut = cut;
    look_again();
}

/* Who has knocked, and hears no answer, knocks again. */
static void drop_from(struct sim_socket *socket, const struct sim_host *host)
{
    bool is_lost = false;

    for (struct list *node = socket->flying.next, *next; node != &socket->flying; node = next) {
        struct segment *segment = LIST_ENTRY(node, struct segment, of_socket);

        next = node->next;
        if (segment->from != host)
            continue;
        is_lost = true;
        socket->flying_bytes -= segment->len;
        segment_free(segment);
    }
    if (is_lost && socket->state == SIM_CONNECTING)
        sim_convey(socket, socket->host, SIM_KNOCK, (struct text){NULL, 0});
}

static struct sim_socket *connection_of(const struct sim_host *host)
{
    for (struct list *node = host->sockets.next; node != &host->sockets; node = node->next) {
        struct sim_socket *socket = LIST_ENTRY(node, struct sim_socket, of_host);

        if (socket->state != SIM_LISTENING)
            return socket;
    }
    return NULL;
}

static void lose_connections(const struct sim_host *host)
{
    struct sim_socket *socket;

    while ((socket = connection_of(host))) {
        CHECK(socket->actor);
        socket->actor->closed(socket, socket->actor_arg);
        sim_socket_end(socket);
    }
    for (unsigned i = 0; i < host_count; i++)
        for (struct list *node = hosts[i]->sockets.next; node != &hosts[i]->sockets; node = node->next)
            drop_from(LIST_ENTRY(node, struct sim_socket, of_host), host);
}

void sim_host_power(struct sim_host *host, bool is_on)
{
    host->is_off = !is_on;
    if (!is_on)
        lose_connections(host);
    look_again();
}

/* An end at `a` of a connection between the two: so many others are in front of it. NULL: there are not as many. */
static struct sim_socket *joining(const struct sim_host *a, const struct sim_host *b, uint64_t others)
{
    for (struct list *node = a->sockets.next; node != &a->sockets; node = node->next) {
        struct sim_socket *socket = LIST_ENTRY(node, struct sim_socket, of_host);

        if (socket->peer && socket->peer_host == b && others-- == 0)
            return socket;
    }
    return NULL;
}

static void arrive_soon(struct sim_socket *socket)
{
    for (struct list *node = socket->flying.next; node != &socket->flying; node = node->next) {
        struct segment *segment = LIST_ENTRY(node, struct segment, of_socket);

        if (segment->at_ns > sim_now_ns() + HEAL_NS)
            segment->at_ns = sim_now_ns() + HEAL_NS;
    }
    await(socket);
}

void sim_connections_lag(const struct sim_host *from, const struct sim_host *to, uint64_t most_ns)
{
    struct link *link = &links[from->number][to->number];
    struct sim_socket *socket;

    link->lag_most_ns = most_ns;
    link->lag_turn++;
    for (uint64_t i = 0; most_ns == 0 && (socket = joining(to, from, i)); i++)
        arrive_soon(socket);
}

static void reset(struct sim_socket *socket)
{
    struct sim_socket *peer = socket->peer;

    socket->peer = peer->peer = NULL;
    sim_drop_flying(socket);
    sim_drop_flying(peer);
    sim_convey(peer, socket->host, SIM_RESET, (struct text){NULL, 0});
    sim_convey(socket, peer->host, SIM_RESET, (struct text){NULL, 0});
}

void sim_connections_reset(const struct sim_host *a, const struct sim_host *b)
{
    struct sim_socket *socket;

    while ((socket = joining(a, b, 0)))
        reset(socket);
}

void sim_connection_reset(const struct sim_host *a, const struct sim_host *b)
{
    struct sim_socket *socket, *slowest = NULL;
    uint64_t count = 0;

    for (; (socket = joining(a, b, count)); count++)
        if (!slowest || socket->lag_ns > slowest->lag_ns)
            slowest = socket;
    if (count > 0)
        reset(sim_draw_below(2) ? slowest : joining(a, b, sim_draw_below(count)));
}

void sim_host_pace(struct sim_host *host, int64_t ppm)
{
    const int64_t before = host->clock.pace_ppm;

    host->clock.lead_ns += (int64_t)((__int128)(int64_t)sim_spent_ns() * (before - ppm) / PPM);
    host->clock.pace_ppm = ppm;
}

int64_t sim_host_calendar(const struct sim_host *host)
{
    return (int64_t)((__int128)(int64_t)sim_spent_ns() * host->clock.pace_ppm / PPM) + host->clock.lead_ns +
           host->clock.off_ns;
}

void sim_host_set_calendar(struct sim_host *host, int64_t wrong_ns)
{
    host->clock.off_ns += wrong_ns - sim_host_calendar(host);
}

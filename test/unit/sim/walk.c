#include "walk.h"
#include "kernel_internal.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { ID_BYTES = 4, MOST_BYTES = 64 * 1024 };

struct walk_end *walk_ends[WALK_ENDS_MAX];
unsigned walk_end_count;
struct walk_counts walk_counts;
uint64_t walk_digest;

static struct walk_pair pairs[WALK_ENDS_MAX];
static unsigned pair_count;

static void note(const struct walk_end *end, char what, size_t value)
{
    const uint64_t words[] = {net_now_ns(), end->number, (uint64_t)what, value};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        walk_digest = (walk_digest ^ words[i]) * UINT64_C(0x100000001b3);
}

static struct walk_end *end_new(bool is_actor, unsigned side)
{
    struct walk_end *end = calloc(1, sizeof *end);

    cr_assert_lt(walk_end_count, WALK_ENDS_MAX);
    end->is_actor = is_actor;
    end->is_open = true;
    end->side = side;
    end->number = walk_end_count;
    end->tcp.data = end->connect.data = end->shutdown.data = end;
    walk_ends[walk_end_count++] = end;
    net_open++;
    return end;
}

static unsigned pair_number(const struct walk_end *end)
{
    return (unsigned)(end->pair - pairs);
}

static unsigned char byte_at(unsigned pair, unsigned side, size_t place)
{
    if (side == 0 && place < ID_BYTES)
        return (unsigned char)(pair >> (8 * place));
    return (unsigned char)((place * 131 + pair * 17 + side * 89) ^ (place >> 8) * 37);
}

/* Which connection it is: its first bytes tell. */
static void learn(struct walk_end *end)
{
    unsigned number = 0;

    for (unsigned i = 0; i < ID_BYTES; i++)
        number |= (unsigned)end->id[i] << (8 * i);
    cr_assert_lt(number, pair_count);
    cr_assert_null(pairs[number].ends[1]);
    end->pair = &pairs[number];
    end->pair->ends[1] = end;
}

static void hear(struct walk_end *end, const char *bytes, size_t count)
{
    const struct walk_end *other;

    cr_assert(end->is_open && end->is_connected && !end->knows_of_end);
    walk_counts.pieces++;
    note(end, 'b', count);
    for (size_t i = 0; i < count; i++, end->heard++) {
        if (!end->pair) {
            end->id[end->heard] = (unsigned char)bytes[i];
            if (end->heard == ID_BYTES - 1)
                learn(end);
            continue;
        }
        cr_assert_eq((unsigned char)bytes[i], byte_at(pair_number(end), !end->side, end->heard));
    }
    other = end->pair ? end->pair->ends[!end->side] : NULL;
    if (other)
        cr_assert_leq(end->heard, other->sent);
}

/* Nothing was lost: an end comes after all bytes. */
static void hear_end(struct walk_end *end)
{
    const struct walk_end *other = end->pair ? end->pair->ends[!end->side] : NULL;

    cr_assert_not(end->knows_of_end);
    end->knows_of_end = true;
    walk_counts.ends++;
    note(end, 'e', end->heard);
    if (end->pair)
        cr_assert_eq(end->heard, other ? other->sent : 0, "end %u: %zu bytes of %zu, other open %d", end->number,
                     end->heard, other ? other->sent : 0, other ? other->is_open : -1);
}

static void greet(struct walk_end *end)
{
    cr_assert_not(end->is_connected);
    end->is_connected = true;
    walk_counts.welcomed++;
    note(end, 'c', 0);
    walk_send(end, ID_BYTES);
    cr_assert_eq(end->sent, ID_BYTES);
}

static void fail(struct walk_end *end, int error)
{
    walk_counts.resets += error == UV_ECONNRESET || error == UV_EPIPE;
    walk_counts.refused += error == UV_ECONNREFUSED;
    walk_counts.timeouts += error == UV_ETIMEDOUT;
    note(end, 'f', (size_t)-error);
    walk_close(end, false);
}

/* Actors */

static void actor_connected(struct sim_socket *socket, void *arg)
{
    struct walk_end *end = arg;

    if (end) {
        greet(end);
        return;
    }
    end = end_new(true, 1);
    end->socket = socket;
    end->is_connected = true;
    sim_actor_is(socket, end);
}

static void actor_received(struct sim_socket *socket, void *arg, const char *bytes, size_t length)
{
    cr_assert_eq(((struct walk_end *)arg)->socket, socket);
    hear(arg, bytes, length);
}

static void actor_ended(struct sim_socket *socket, void *arg)
{
    (void)socket;
    hear_end(arg);
}

static void actor_closed(struct sim_socket *socket, void *arg)
{
    struct walk_end *end = arg;

    (void)socket;
    cr_assert(end->is_open);
    end->is_open = false;
    net_open--;
    note(end, 'x', 0);
}

static const struct sim_actor ACTOR = {
    .connected = actor_connected, .received = actor_received, .closed = actor_closed, .ended = actor_ended};

/* Clients and servers of libuv */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    static char bytes[MOST_BYTES];

    (void)handle, (void)suggested;
    *ret_buf = uv_buf_init(bytes, sizeof bytes);
}

/* libuv tells an end, not a reset, if bytes came just before that. */
static bool is_reset(const struct walk_end *end)
{
    int fd, error = 0;
    socklen_t length = sizeof error;

    cr_assert_eq(uv_fileno((const uv_handle_t *)&end->tcp, &fd), 0);
    cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length), 0);
    return error != 0;
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buf)
{
    struct walk_end *end = stream->data;

    if (length > 0)
        hear(end, buf->base, (size_t)length);
    else if (length == UV_EOF && !is_reset(end))
        hear_end(end);
    else if (length == UV_EOF)
        fail(end, UV_ECONNRESET);
    else if (length < 0)
        fail(end, (int)length);
}

static void on_connect(uv_connect_t *connect, int status)
{
    struct walk_end *end = connect->data;

    if (!end->is_open)
        return;
    if (status != 0) {
        fail(end, status);
        return;
    }
    greet(end);
    if (end->is_open && !end->holds)
        cr_assert_eq(uv_read_start((uv_stream_t *)&end->tcp, on_alloc, on_read), 0);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct walk_end *end = end_new(false, 1);

    cr_assert_eq(status, 0);
    cr_assert_eq(uv_tcp_init(&net_loop, &end->tcp), 0);
    cr_assert_eq(uv_accept(listener, (uv_stream_t *)&end->tcp), 0);
    end->is_connected = true;
    cr_assert_eq(uv_read_start((uv_stream_t *)&end->tcp, on_alloc, on_read), 0);
}

static void on_close(uv_handle_t *handle)
{
    (void)handle;
    net_open--;
}

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    (void)shutdown, (void)status; /* it may have been reset meanwhile */
}

/* Both */

struct sim_socket *walk_listen(struct sim_host *host)
{
    return sim_actor_listen(host, WALK_PORT, &ACTOR, NULL);
}

void walk_listen_here(uv_tcp_t *listener)
{
    struct sockaddr_in address;

    uv_ip4_addr("0.0.0.0", WALK_PORT, &address);
    cr_assert_eq(uv_tcp_init(&net_loop, listener), 0);
    cr_assert_eq(uv_tcp_bind(listener, (struct sockaddr *)&address, 0), 0);
    cr_assert_eq(uv_listen((uv_stream_t *)listener, 64, on_connection), 0);
}

void walk_connect(struct sim_host *host, const char *ip)
{
    struct walk_end *end = end_new(host != NULL, 0);
    struct sockaddr_in address;

    end->pair = &pairs[pair_count++];
    *end->pair = (struct walk_pair){{end, NULL}};
    walk_counts.opened++;
    uv_ip4_addr(ip, WALK_PORT, &address);
    if (host) {
        end->socket = sim_actor_connect(host, address.sin_addr, WALK_PORT, &ACTOR, end);
        return;
    }
    cr_assert_eq(uv_tcp_init(&net_loop, &end->tcp), 0);
    cr_assert_eq(uv_tcp_connect(&end->connect, &end->tcp, (struct sockaddr *)&address, on_connect), 0);
}

static int send_now(struct walk_end *end, char *bytes, size_t count)
{
    uv_buf_t buf = uv_buf_init(bytes, (unsigned)count);

    if (!end->is_actor)
        return uv_try_write((uv_stream_t *)&end->tcp, &buf, 1);
    return sim_actor_send(end->socket, bytes, count) ? (int)count : UV_EAGAIN;
}

void walk_send(struct walk_end *end, size_t count)
{
    static char bytes[MOST_BYTES];
    int taken;

    if (!end->is_connected || !end->pair || end->has_ended)
        return;
    cr_assert_leq(count, sizeof bytes);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)byte_at(pair_number(end), end->side, end->sent + i);
    taken = send_now(end, bytes, count);
    if (taken >= 0)
        end->sent += (size_t)taken;
    else if (taken == UV_EAGAIN)
        walk_counts.full++;
    else
        fail(end, taken);
}

void walk_hold(struct walk_end *end, bool holds)
{
    end->holds = holds;
    if (end->is_actor)
        sim_actor_hold(end->socket, holds);
    else if (holds)
        uv_read_stop((uv_stream_t *)&end->tcp);
    else if (end->is_connected && !end->knows_of_end)
        (void)uv_read_start((uv_stream_t *)&end->tcp, on_alloc, on_read);
}

void walk_say_end(struct walk_end *end)
{
    if (!end->is_connected || !end->pair || end->has_ended)
        return;
    end->has_ended = true;
    if (end->is_actor)
        sim_actor_end(end->socket);
    else
        (void)uv_shutdown(&end->shutdown, (uv_stream_t *)&end->tcp, on_shutdown);
}

void walk_close(struct walk_end *end, bool breaks)
{
    cr_assert(end->is_open);
    end->is_open = false;
    if (end->is_actor) {
        (breaks ? sim_actor_break : sim_actor_close)(end->socket);
        net_open--;
    } else if (!breaks || end->has_ended || uv_tcp_close_reset(&end->tcp, on_close) != 0) {
        uv_close((uv_handle_t *)&end->tcp, on_close);
    }
}

void walk_forget(void)
{
    while (walk_end_count > 0) {
        cr_assert_not(walk_ends[--walk_end_count]->is_open);
        free(walk_ends[walk_end_count]);
    }
    pair_count = 0;
}

#include "net.h"
#include "kernel.h"
#include "kernel_internal.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { FDS_MAX = 4096, GUARD_MS = 10 };

uv_loop_t net_loop;
struct sim_host *net_near, *net_far;
struct sim_socket *net_accepted;
struct heard net_heard;
unsigned net_open;
bool net_echoes;

static struct sim_host *host;
static struct sim_socket *listener;
static bool is_woken, is_open[FDS_MAX];
static uint64_t began_ns;
static uv_timer_t guard;

/* The world: one process */

static void wait_until(uint64_t until_ns)
{
    while (!is_woken && sim_step(until_ns))
        ;
    is_woken = false;
}

static void *current(void)
{
    return &net_loop;
}

static void wake(void *process)
{
    cr_assert_eq(process, &net_loop);
    is_woken = true;
}

static struct sim_host *host_now(void)
{
    return host;
}

static const struct sim_clock *clock_now(void)
{
    return host ? &host->clock : NULL;
}

static void opened(int fd)
{
    cr_assert_lt(fd, FDS_MAX);
    is_open[fd] = true;
}

static void closed(int fd)
{
    if (fd >= 0 && fd < FDS_MAX)
        is_open[fd] = false;
}

static bool printed(int fd, const struct iovec *parts, size_t count)
{
    (void)fd, (void)parts, (void)count;
    return false;
}

static const struct sim_world WORLD = {.wait = wait_until,
                                       .current = current,
                                       .wake = wake,
                                       .host = host_now,
                                       .clock = clock_now,
                                       .opened = opened,
                                       .closed = closed,
                                       .printed = printed};

static void on_guard(uv_timer_t *timer)
{
    (void)timer;
}

/* What libuv keeps for good is the system's. */
static void prepare_libuv(void)
{
    uv_loop_t loop;

    cr_assert_eq(uv_loop_init(&loop), 0);
    cr_assert_eq(uv_loop_close(&loop), 0);
}

/* The next second: libuv counts milliseconds. */
static uint64_t begin_of_time(void)
{
    const uint64_t second_ns = UINT64_C(1000) * NET_MS;

    return (uv_hrtime() / second_ns + 1) * second_ns;
}

void net_begin(uint64_t seed)
{
    prepare_libuv();
    sim_kernel_enter_at(begin_of_time(), UINT64_C(1800000000) * 1000 * NET_MS);
    sim_world = &WORLD;
    sim_network_begin();
    sim_schedule_begin(seed);
    began_ns = sim_now_ns();
    host = net_near = sim_host_new("near", "10.0.0.1");
    net_far = sim_host_new("far", "10.0.0.2");
    cr_assert_eq(uv_loop_init(&net_loop), 0);
    uv_timer_init(&net_loop, &guard);
}

void net_end(void)
{
    if (listener)
        sim_actor_close(listener);
    listener = NULL;
    uv_close((uv_handle_t *)&guard, NULL);
    uv_run(&net_loop, UV_RUN_DEFAULT);
    cr_assert_eq(uv_loop_close(&net_loop), 0);
    cr_assert_eq(net_open, 0);
    free(net_heard.bytes);
    net_heard = (struct heard){0};
    host = NULL;
    sim_network_begin();
    for (int fd = 0; fd < FDS_MAX; fd++)
        cr_assert_not(is_open[fd], "descriptor %d is still open", fd);
    sim_world = NULL;
}

void net_be_at(struct sim_host *at)
{
    host = at;
}

void net_delay(uint64_t least_ns, uint64_t most_ns)
{
    sim_link_delay(net_near, net_far, least_ns, most_ns);
    sim_link_delay(net_far, net_near, least_ns, most_ns);
}

void net_cut(bool is_cut)
{
    sim_link_cut(net_near, net_far, is_cut);
    sim_link_cut(net_far, net_near, is_cut);
}

uint64_t net_now_ns(void)
{
    return sim_now_ns() - began_ns;
}

void net_hear(struct heard *heard, const char *bytes, size_t length)
{
    if (!heard->bytes)
        heard->bytes = malloc(NET_BYTES_MAX);
    cr_assert_leq(heard->len + length, NET_BYTES_MAX);
    memcpy(heard->bytes + heard->len, bytes, length);
    heard->len += length;
    heard->least = heard->pieces == 0 || length < heard->least ? length : heard->least;
    heard->most = length > heard->most ? length : heard->most;
    heard->pieces++;
}

/* The actor */

static void actor_connected(struct sim_socket *socket, void *arg)
{
    (void)arg;
    net_accepted = socket;
    net_heard.connected++;
    net_open++;
}

static void actor_received(struct sim_socket *socket, void *arg, const char *bytes, size_t length)
{
    (void)arg;
    net_hear(&net_heard, bytes, length);
    if (net_echoes)
        cr_assert(sim_actor_send(socket, bytes, length));
}

static void actor_closed(struct sim_socket *socket, void *arg)
{
    (void)arg;
    net_heard.closed++;
    net_open--;
    if (net_accepted == socket)
        net_accepted = NULL;
}

const struct sim_actor NET_ACTOR = {.connected = actor_connected, .received = actor_received, .closed = actor_closed};

void net_listen(void)
{
    listener = sim_actor_listen(net_far, NET_PORT, &NET_ACTOR, NULL);
}

/* A client */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    static char bytes[64 * 1024];

    (void)handle, (void)suggested;
    *ret_buf = uv_buf_init(bytes, sizeof bytes);
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buf)
{
    struct net_client *client = stream->data;

    if (length > 0)
        net_hear(&client->heard, buf->base, (size_t)length);
    else if (length == UV_EOF)
        client->heard.ended++;
    else if (length < 0)
        client->heard.error = (int)length;
}

static void on_connect(uv_connect_t *connect, int status)
{
    struct net_client *client = connect->data;

    client->heard.error = status;
    if (status != 0)
        return;
    client->is_connected = true;
    client->heard.connected++;
    cr_assert_eq(uv_read_start((uv_stream_t *)&client->tcp, on_alloc, on_read), 0);
}

void net_connect(struct net_client *client, const char *ip, uint16_t port)
{
    struct sockaddr_in address;

    *client = (struct net_client){.is_open = true};
    cr_assert_eq(uv_ip4_addr(ip, port, &address), 0);
    cr_assert_eq(uv_tcp_init(&net_loop, &client->tcp), 0);
    client->tcp.data = client->connect.data = client;
    cr_assert_eq(uv_tcp_connect(&client->connect, &client->tcp, (struct sockaddr *)&address, on_connect), 0);
}

struct write {
    uv_write_t request;
    char bytes[];
};

static void on_write(uv_write_t *request, int status)
{
    struct net_client *client = request->data;

    if (status != 0 && status != UV_ECANCELED)
        client->heard.error = status;
    free(request);
}

void net_send(struct net_client *client, const char *bytes, size_t length)
{
    struct write *write = malloc(sizeof *write + length);
    uv_buf_t buf = uv_buf_init(write->bytes, (unsigned)length);

    memcpy(write->bytes, bytes, length);
    write->request.data = client;
    cr_assert_eq(uv_write(&write->request, (uv_stream_t *)&client->tcp, &buf, 1, on_write), 0);
}

static void on_close(uv_handle_t *handle)
{
    struct net_client *client = handle->data;

    client->is_open = false;
    free(client->heard.bytes);
    client->heard.bytes = NULL;
}

void net_close(struct net_client *client)
{
    uv_close((uv_handle_t *)&client->tcp, on_close);
    while (client->is_open)
        net_run_once();
}

static void run_once(uint64_t most_ms)
{
    uv_update_time(&net_loop);
    uv_timer_start(&guard, on_guard, most_ms, 0);
    uv_run(&net_loop, UV_RUN_ONCE);
}

void net_run_once(void)
{
    run_once(GUARD_MS);
}

void net_run_for_ms(uint64_t ms)
{
    const uint64_t until_ns = net_now_ns() + ms * NET_MS;

    while (net_now_ns() < until_ns)
        run_once((until_ns - net_now_ns() + NET_MS - 1) / NET_MS);
}

struct net_client net_client;

void net_begin_connected(uint64_t seed)
{
    net_begin(seed);
    net_delay(1 * NET_MS, 5 * NET_MS);
    net_listen();
    net_connect(&net_client, "10.0.0.2", NET_PORT);
    NET_RUN_UNTIL(net_client.is_connected);
    cr_assert(net_accepted);
}

void net_end_connected(void)
{
    net_close(&net_client);
    NET_RUN_UNTIL(net_open == 0);
    net_end();
}

const char *net_pattern(void)
{
    static char bytes[NET_PATTERN_BYTES];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    return bytes;
}

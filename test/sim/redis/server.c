/* A program that takes the place of redis-server in tests: simredis behind sockets, with its data in a file.
 *   simredis-server --NAME VALUE...   as redis-server; of the settings, dir, port, bind, unixsocket, appendonly and
 * those of simredis itself count. It has no TLS, and refuses to start in a cluster. */
#include "base/mem.h"
#include "base/text.h"
#include "simredis.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum { PATH_BYTES = 4096, READ_BYTES = 65536 };

struct peer {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } on;
    struct simredis_client *client; /* NULL: the server closed it, or it leads to a master */
    bool is_master;                 /* and the server has not closed it */
    uv_connect_t request;
};

struct sent {
    uv_write_t request;
    char bytes[];
};

static uv_loop_t loop;
static uv_timer_t timer;
static struct simredis *server;
static int file = -1;
static char read_bytes[READ_BYTES];
static uv_tcp_t *port_listener; /* NULL: none */
static char port_listened[16] = "0";

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "simredis-server: %s\n", what);
    exit(1);
}

static uint64_t unix_us(void *context)
{
    struct timespec now;

    (void)context;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t random_number(void *context)
{
    uint64_t number = 0;

    (void)context;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        fail("getrandom");
    return number;
}

static void on_written(uv_write_t *request, int status)
{
    (void)status;
    free(request);
}

static void send_bytes(void *client, const char *bytes, size_t length)
{
    struct peer *peer = client;
    struct sent *sent = mem_alloc(sizeof *sent + length);
    uv_buf_t buffer = uv_buf_init(sent->bytes, (unsigned)length);

    memcpy(sent->bytes, bytes, length);
    if (uv_write(&sent->request, &peer->on.stream, &buffer, 1, on_written) != 0)
        free(sent);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

/* libuv tries to write at once, so that a short farewell has left before this. */
static void close_client(void *client)
{
    struct peer *peer = client;

    peer->client = NULL;
    peer->is_master = false;
    if (!uv_is_closing(&peer->on.handle))
        uv_close(&peer->on.handle, on_closed);
}

static void write_log(void *context, const char *bytes, size_t length)
{
    (void)context;
    for (size_t done = 0; file >= 0 && done < length;) {
        ssize_t written = write(file, bytes + done, length - done);

        if (written < 0)
            fail("its file cannot be written");
        done += (size_t)written;
    }
}

static void open_port(void);

static void on_timer(uv_timer_t *handle);

/* What may have changed with what a client asked for. */
static void look_ahead(void)
{
    uint64_t next = simredis_next_us(server), now = unix_us(NULL);

    if (strcmp(simredis_setting(server, "port"), port_listened) != 0)
        open_port();
    if (next != UINT64_MAX)
        uv_timer_start(&timer, on_timer, next > now ? (next - now + 999) / 1000 : 0, 0);
}

static void on_timer(uv_timer_t *handle)
{
    (void)handle;
    simredis_run(server);
    look_ahead();
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    (void)handle;
    (void)suggested;
    *buffer = uv_buf_init(read_bytes, sizeof read_bytes);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct peer *peer = (struct peer *)(void *)stream;

    if (count > 0 && peer->client) {
        simredis_receive(peer->client, buffer->base, (size_t)count);
        look_ahead();
    } else if (count > 0 && peer->is_master) {
        simredis_master_receive(server, buffer->base, (size_t)count);
        look_ahead();
    } else if (count < 0) {
        if (peer->client)
            simredis_disconnect(peer->client);
        if (peer->is_master)
            simredis_master_lost(server);
        close_client(peer);
        look_ahead();
    }
}

static void on_dialled(uv_connect_t *request, int status)
{
    struct peer *peer = request->data;

    if (!peer->is_master)
        return;
    if (status == 0) {
        uv_read_start(&peer->on.stream, on_alloc, on_read);
        simredis_master_up(server);
    } else {
        simredis_master_lost(server);
        close_client(peer);
    }
    look_ahead();
}

static void *dial(void *context, const char *host, uint16_t port)
{
    struct peer *peer = mem_alloc(sizeof *peer);
    struct sockaddr_in address;

    (void)context;
    uv_tcp_init(&loop, &peer->on.tcp);
    uv_tcp_nodelay(&peer->on.tcp, 1);
    peer->request.data = peer;
    peer->is_master = true;
    if (uv_ip4_addr(host, port, &address) == 0 &&
        uv_tcp_connect(&peer->request, &peer->on.tcp, (const struct sockaddr *)&address, on_dialled) == 0)
        return peer;
    close_client(peer);
    return NULL;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct peer *peer = mem_alloc(sizeof *peer);
    bool is_tcp = listener->type == UV_TCP;

    if (is_tcp)
        uv_tcp_init(&loop, &peer->on.tcp);
    else
        uv_pipe_init(&loop, &peer->on.pipe, 0);
    if (status != 0 || uv_accept(listener, &peer->on.stream) != 0) {
        close_client(peer);
        return;
    }
    if (is_tcp)
        uv_tcp_nodelay(&peer->on.tcp, 1);
    peer->client = simredis_connect(server, peer);
    uv_read_start(&peer->on.stream, on_alloc, on_read);
}

/* In place of the port that was. */
static void open_port(void)
{
    struct sockaddr_in address;
    uint64_t port;

    snprintf(port_listened, sizeof port_listened, "%s", simredis_setting(server, "port"));
    if (port_listener)
        uv_close((uv_handle_t *)port_listener, on_closed);
    port_listener = NULL;
    if (!text_to_u64(text_of(port_listened), UINT16_MAX, &port))
        fail("its port is none");
    if (port == 0)
        return;
    port_listener = mem_alloc(sizeof *port_listener);
    uv_tcp_init(&loop, port_listener);
    if (uv_ip4_addr(simredis_setting(server, "bind"), (int)port, &address) != 0 ||
        uv_tcp_bind(port_listener, (const struct sockaddr *)&address, 0) != 0 ||
        uv_listen((uv_stream_t *)port_listener, 511, on_connection) != 0)
        fail("its port cannot be opened");
}

static void open_socket(void)
{
    const char *path = simredis_setting(server, "unixsocket");
    uv_pipe_t *listener = mem_alloc(sizeof *listener);

    uv_pipe_init(&loop, listener, 0);
    if (!path[0]) {
        uv_close((uv_handle_t *)listener, on_closed);
        return;
    }
    unlink(path);
    if (uv_pipe_bind(listener, path) != 0 || uv_listen((uv_stream_t *)listener, 511, on_connection) != 0)
        fail("its socket cannot be opened");
}

static void load_file(const char *path)
{
    struct buf data;
    char chunk[READ_BYTES];
    ssize_t count;

    file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0)
        fail("its file cannot be opened");
    buf_init(&data, SIZE_MAX / 2);
    while ((count = read(file, chunk, sizeof chunk)) > 0)
        buf_append(&data, chunk, (size_t)count);
    if (data.len > 0 && !simredis_load(server, data.ptr, data.len))
        fail("its file is damaged");
    buf_finish(&data);
}

static void open_file(void)
{
    char folder[PATH_BYTES], path[PATH_BYTES + 32];

    if (strcmp(simredis_setting(server, "appendonly"), "yes") != 0)
        return;
    snprintf(folder, sizeof folder, "%s/appendonlydir", simredis_setting(server, "dir"));
    snprintf(path, sizeof path, "%s/appendonly.aof.1.incr.aof", folder); /* where tests look for it */
    mkdir(folder, 0700);
    load_file(path);
}

int main(int argc, char **argv)
{
    static const struct simredis_host HOST = {.unix_us = unix_us,
                                              .random = random_number,
                                              .send = send_bytes,
                                              .close = close_client,
                                              .log = write_log,
                                              .dial = dial};

    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop);
    server = simredis_new(&HOST);
    for (int i = 1; i + 1 < argc; i += 2)
        if (strncmp(argv[i], "--", 2) != 0 || !simredis_configure(server, argv[i] + 2, argv[i + 1]))
            fail(argv[i]);
    if (strcmp(simredis_setting(server, "cluster-enabled"), "yes") == 0)
        fail("it is no cluster");
    open_file();
    uv_timer_init(&loop, &timer);
    open_socket();
    open_port();
    look_ahead();
    return uv_run(&loop, UV_RUN_DEFAULT);
}

#include "sides.h"

#include "base/mem.h"
#include "clock_file.h"
#include "deadline.h"
#include "free_port.h"
#include "redis_cluster.h"
#include "redis_server.h"
#include "simredis_cluster.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { UP_US = 3000000 };

struct client {
    struct simredis_client *simulated; /* NULL: closed */
    int real;                          /* -1: closed */
    struct buf replies[2];
    size_t seen[2]; /* of these */
};

static struct {
    struct simredis *server;
    struct redis_server real;
    char nodes[512]; /* empty: they are in no cluster */
    struct clock_file clock;
    struct client clients[CLIENTS];
    struct buf log;
    char real_run_id[41];
    const char *run_id; /* what a new simredis has yet to take of it, by chance: scripts see it */
    uint64_t unix_us, random, pings;
} sides;

static uint64_t unix_us(void *context)
{
    (void)context;
    return sides.unix_us;
}

static uint64_t random_number(void *context)
{
    (void)context;
    if (*sides.run_id) {
        const char *digits = "0123456789abcdef";

        return (uint64_t)(strchr(digits, *sides.run_id++) - digits);
    }
    return sides.random = sides.random * UINT64_C(6364136223846793005) + 1442695040888963407;
}

static void on_send(void *client, const char *bytes, size_t length)
{
    buf_append(&((struct client *)client)->replies[0], bytes, length);
}

static void on_close(void *client)
{
    ((struct client *)client)->simulated = NULL;
}

static void on_log(void *context, const char *bytes, size_t length)
{
    (void)context;
    buf_append(&sides.log, bytes, length);
}

/* It is alone in its cluster. */

static void tell_nobody(void *context, const char *host, uint16_t port, const char *bytes, size_t length)
{
    (void)context, (void)host, (void)port, (void)bytes, (void)length;
}

static bool ask_nobody(void *context, const char *host, uint16_t port, const char *bytes, size_t length,
                       struct buf *ret_replies)
{
    tell_nobody(context, host, port, bytes, length);
    (void)ret_replies;
    return false;
}

/* Which is up once the clock has gone on. */
static void join(struct simredis *server)
{
    static const struct simredis_bus BUS = {tell_nobody, ask_nobody};
    const uint64_t now_us = sides.unix_us;

    sides.unix_us -= UP_US;
    if (!simredis_join(server, &BUS, sides.nodes))
        test_give_up("simredis does not join by %s", sides.nodes);
    sides.unix_us = now_us;
    simredis_run(server);
}

static struct simredis *make_server(void)
{
    static const struct simredis_host HOST = {
        .unix_us = unix_us, .random = random_number, .send = on_send, .close = on_close, .log = on_log};
    struct simredis *server;

    sides.run_id = sides.real_run_id;
    server = simredis_new(&HOST);

    if (!simredis_configure(server, "appendonly", "no"))
        test_give_up("appendonly");
    if (sides.nodes[0])
        join(server);
    return server;
}

static void connect_client(struct client *client)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    client->simulated = simredis_connect(sides.server, client);
    client->real = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", sides.real.socket_path);
    if (client->real < 0 || connect(client->real, (struct sockaddr *)&address, sizeof address) != 0)
        test_give_up("redis-server cannot be reached");
}

void sides_set_clock(uint64_t time_us)
{
    sides.unix_us = time_us;
    clock_file_stop(&sides.clock, time_us);
}

static void read_run_id(void)
{
    char info[8192];

    redis_server_ask(&sides.real, info, sizeof info, "INFO", "replication", NULL);
    snprintf(sides.real_run_id, sizeof sides.real_run_id, "%.40s",
             strstr(info, "master_replid:") + strlen("master_replid:"));
}

/* It becomes whole by its clock, which is set back to where it was. */
static void start_cluster(uint64_t time_us)
{
    struct cluster_servers cluster = {.primaries = 1, .count = 1};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char info[1024];

    redis_server_prepare(&sides.real,
                         &(struct redis_server_options){
                             .not_durable = true, .allows_debug = true, .tcp = true, .cluster_port = free_port()});
    cluster.servers[0] = sides.real;
    cluster_servers_introduce(&cluster);
    clock_file_stop(&sides.clock, time_us - UP_US);
    redis_server_restart(&sides.real);
    clock_file_stop(&sides.clock, time_us);
    do {
        redis_server_tell(&sides.real, "CLUSTER", "SETSLOT", "0", "STABLE", NULL);
        redis_server_ask(&sides.real, info, sizeof info, "CLUSTER", "INFO", NULL);
    } while (!strstr(info, "cluster_state:ok") && deadline_left_ms(deadline) > 0);
    redis_server_ask(&sides.real, sides.nodes, sizeof sides.nodes, "CLUSTER", "NODES", NULL);
}

void sides_start(uint64_t time_us, uint64_t seed, bool in_cluster)
{
    sides.random = seed;
    sides.unix_us = time_us;
    clock_file_make(&sides.clock, 0);
    clock_file_stop(&sides.clock, time_us);
    clock_file_begin(&sides.clock, NULL);
    if (in_cluster)
        start_cluster(time_us);
    else
        redis_server_start(&sides.real, &(struct redis_server_options){.not_durable = true, .allows_debug = true});
    clock_file_end();
    read_run_id();
    buf_init(&sides.log, SIZE_MAX / 2);
    sides.server = make_server();
    for (size_t i = 0; i < 2 * CLIENTS; i++)
        buf_init(&sides.clients[i / 2].replies[i % 2], SIZE_MAX / 2);
    for (size_t i = 0; i < CLIENTS; i++)
        connect_client(&sides.clients[i]);
}

static void append_request(struct buf *out, const struct line *line)
{
    buf_printf(out, "*%zu\r\n", line->argc);
    for (size_t i = 0; i < line->argc; i++) {
        buf_printf(out, "$%zu\r\n", line->argv[i].len);
        buf_append_text(out, line->argv[i]);
        buf_append_str(out, "\r\n");
    }
}

/* In pieces. */
static void send_simulated(struct client *client, struct text bytes)
{
    while (bytes.len > 0 && client->simulated) {
        size_t piece = words_random(4) > 0 ? bytes.len : words_random(bytes.len) + 1;

        simredis_receive(client->simulated, bytes.ptr, piece);
        bytes = text_skip(bytes, piece);
    }
}

static void send_real(struct client *client, struct text bytes)
{
    while (bytes.len > 0) {
        ssize_t sent = send(client->real, bytes.ptr, bytes.len, MSG_NOSIGNAL);

        if (sent < 0)
            return; /* whoever reads notices it */
        bytes = text_skip(bytes, (size_t)sent);
    }
}

static bool ends_with(struct text text, struct text end)
{
    return text.len >= end.len && text_equal(text_skip(text, text.len - end.len), end);
}

/* Until the answer to the PING, or the end. A command for which Redis waits would keep it for ever: its clock stands.
 */
static void read_real(struct client *client, struct text pong)
{
    struct buf *replies = &client->replies[1];

    while (!ends_with(buf_text(replies), pong)) {
        struct pollfd readable = {.fd = client->real, .events = POLLIN};
        char bytes[65536];

        if (poll(&readable, 1, PATIENCE_MS) == 0)
            test_give_up("redis-server does not answer; before, it said: %.*s", TEXT_ARG(buf_text(replies)));
        ssize_t count = recv(client->real, bytes, sizeof bytes, 0);

        if (count <= 0) {
            close(client->real);
            client->real = -1;
            return;
        }
        buf_append(replies, bytes, (size_t)count);
    }
}

static void ask(struct client *client, const struct line *line)
{
    struct buf request = BUF_UP_TO(SIZE_MAX / 2), pong = BUF_FIXED(64);
    char word[24];
    int len = snprintf(word, sizeof word, "pong-%llu", (unsigned long long)++sides.pings);

    for (size_t side = 0; side < 2; side++)
        buf_consume(&client->replies[side], client->seen[side]);
    if (line)
        append_request(&request, line);
    append_request(&request, &(struct line){.argc = 2, .argv = {TEXT("PING"), {word, (size_t)len}}});
    buf_printf(&pong, "$%d\r\n%s\r\n", len, word);
    send_simulated(client, buf_text(&request));
    send_real(client, buf_text(&request));
    read_real(client, buf_text(&pong));
    for (size_t side = 0; side < 2; side++)
        client->seen[side] = client->replies[side].len;
    buf_finish(&request);
}

bool sides_send(size_t number, const struct line *line)
{
    struct client *client = &sides.clients[number];

    ask(client, line);
    bool are_same = (client->real < 0) == !client->simulated;
    if (client->simulated && client->real < 0)
        simredis_disconnect(client->simulated);
    if (!client->simulated && client->real >= 0)
        close(client->real);
    if (!client->simulated || client->real < 0)
        connect_client(client);
    return are_same;
}

struct text sides_replies(size_t client, size_t side)
{
    return buf_text(&sides.clients[client].replies[side]);
}

bool sides_hear(size_t number, bool always)
{
    struct client *client = &sides.clients[number];
    bool asks = always || client->replies[0].len > client->seen[0];

    if (asks)
        ask(client, NULL);
    return asks;
}

void sides_restart(bool from_log)
{
    size_t length;
    char *saved = simredis_save(sides.server, &length);
    struct simredis *next = make_server();

    bool is_loaded = simredis_load(next, from_log ? sides.log.ptr : saved, from_log ? sides.log.len : length);
    free(saved);
    if (!is_loaded)
        test_give_up("simredis cannot load what it has %s", from_log ? "logged" : "saved");
    simredis_free(sides.server);
    sides.server = next;
    for (size_t i = 0; i < CLIENTS; i++) {
        close(sides.clients[i].real);
        connect_client(&sides.clients[i]);
    }
}

void sides_stop(void)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        close(sides.clients[i].real);
        for (size_t side = 0; side < 2; side++)
            buf_finish(&sides.clients[i].replies[side]);
    }
    simredis_free(sides.server);
    redis_server_stop(&sides.real);
    clock_file_remove(&sides.clock);
    buf_finish(&sides.log);
}

#include "server.h"
#include "actor.h"
#include "base/check.h"
#include "base/mem.h"
#include "bus.h"
#include "schedule.h"
#include "shift.h"
#include "simredis_cluster.h"
#include "socket_internal.h"
#include "trace.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct sim_actor ACTOR;

#define NODE_TIMEOUT_MS "2000"

enum { PORT = 6379, NS_PER_US = 1000, FIRST_ROOM = 4096, SETTINGS_MAX = 12, NAME_BYTES = 40, VALUE_BYTES = 64 };

struct setting {
    char name[NAME_BYTES], value[VALUE_BYTES];
};

struct bytes {
    char *ptr;
    size_t len;
};

struct sim_server {
    struct sim_host *host;
    struct simredis *redis;      /* NULL: it is down */
    struct sim_socket *listener; /* on a host */
    int listeners[SIM_SERVER_LISTENERS];
    size_t listener_count;
    int file; /* without a host; -1: none */
    uint16_t port;
    struct sim_shift shift;
    bool is_frozen;
    struct setting settings[SETTINGS_MAX]; /* when it starts again */
    size_t setting_count;
    struct list peers;
    struct sim_event turn;
    struct bytes disk, copy; /* disk: while it is down */
    /* Of a cluster's member: */
    struct list of_members;
    struct sim_bus *bus;
    char *nodes; /* its nodes.conf, while it is down; NULL: it is alone */
};

static struct list members = {&members, &members};

struct peer {
    struct list of_server;
    struct sim_server *server;
    struct sim_socket *socket;      /* NULL: it is closed */
    struct buf *replies;            /* of a peer that never had one; NULL: nobody reads them */
    struct simredis_client *client; /* likewise */
    bool is_master;                 /* it leads to the master; else likewise */
    bool is_busy;                   /* within a call of simredis */
    /* What the other end has no room for yet. */
    char *waiting;
    size_t waiting_len, waiting_room;
};

static const char *const SETTINGS[][2] = {
    {"appendonly", "yes"}, {"appendfsync", "always"}, {"maxmemory-policy", "noeviction"}};

/* Without a host it has a clock of its own, whoever runs now. */
static uint64_t unix_us(void *context)
{
    struct sim_server *server = context;
    const struct sim_clock *clock = server->host ? NULL : sim_shift_clock(&server->shift);
    struct timespec now;
    uint64_t us;

    if (server->host)
        clock_gettime(CLOCK_REALTIME, &now);
    else
        now = sim_real_time();
    us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / NS_PER_US;
    if (server->nodes)
        return us + (uint64_t)(server->host->clock.off_ns / NS_PER_US);
    return us + (uint64_t)(clock ? clock->off_ns / NS_PER_US : 0);
}

static uint64_t draw(void *context)
{
    (void)context;
    return sim_draw();
}

static void peer_free(struct peer *peer)
{
    list_remove(&peer->of_server);
    free(peer->waiting);
    free(peer);
}

/* Frees it if nothing is left of it. */
static void peer_look(struct peer *peer)
{
    const bool is_open = peer->client || peer->is_master;

    if (!is_open && peer->socket && peer->waiting_len == 0) {
        sim_actor_close(peer->socket);
        peer->socket = NULL;
    }
    if (!is_open && !peer->socket && !peer->is_busy)
        peer_free(peer);
}

static void flush(struct peer *peer)
{
    const size_t sent = sim_actor_send_some(peer->socket, peer->waiting, peer->waiting_len);

    memmove(peer->waiting, peer->waiting + sent, peer->waiting_len -= sent);
}

static void on_room(struct sim_socket *socket, void *arg)
{
    struct peer *peer = arg;

    (void)socket;
    flush(peer);
    peer_look(peer);
}

static void send_bytes(void *client, const char *bytes, size_t length)
{
    struct peer *peer = client;

    if (peer->replies)
        buf_append(peer->replies, bytes, length);
    if (!peer->socket)
        return;
    while (peer->waiting_room < peer->waiting_len + length) {
        peer->waiting_room = peer->waiting_room > 0 ? 2 * peer->waiting_room : FIRST_ROOM;
        peer->waiting = mem_resize(peer->waiting, peer->waiting_room);
    }
    memcpy(peer->waiting + peer->waiting_len, bytes, length);
    peer->waiting_len += length;
    flush(peer);
}

static void close_client(void *client)
{
    struct peer *peer = client;

    peer->client = NULL;
    peer->is_master = false;
    peer_look(peer);
}

static void look_ahead(struct sim_server *server)
{
    const uint64_t next = simredis_next_us(server->redis), now = unix_us(server);

    if (next == UINT64_MAX || server->is_frozen)
        sim_event_cancel(&server->turn);
    else
        sim_event_in(&server->turn, next > now ? (next - now) * NS_PER_US : 0);
}

static void on_turn(struct sim_event *turn)
{
    struct sim_server *server = LIST_ENTRY(turn, struct sim_server, turn);

    simredis_run(server->redis);
    look_ahead(server);
}

static struct peer *peer_new(struct sim_server *server, struct sim_socket *socket)
{
    struct peer *peer = mem_alloc(sizeof *peer);

    *peer = (struct peer){.server = server, .socket = socket};
    list_append(&server->peers, &peer->of_server);
    peer->client = simredis_connect(server->redis, peer);
    return peer;
}

/* CONFIG SET port */
static void look_at_port(struct sim_server *server)
{
    const char *setting = server->host ? NULL : simredis_setting(server->redis, "port");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd;

    address.sin_port = htons((uint16_t)(setting ? strtoul(setting, NULL, 10) : 0));
    if (address.sin_port == 0 || server->port == address.sin_port || server->listener_count == SIM_SERVER_LISTENERS)
        return;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, SOMAXCONN) == 0);
    server->port = address.sin_port;
    server->listeners[server->listener_count++] = fd;
    sim_actor_take(fd, &ACTOR, server);
}

static void peer_receive(struct peer *peer, const char *bytes, size_t length)
{
    peer->is_busy = true;
    simredis_receive(peer->client, bytes, length);
    peer->is_busy = false;
    look_at_port(peer->server);
    look_ahead(peer->server);
}

static void on_connected(struct sim_socket *socket, void *arg)
{
    struct sim_server *server = arg;

    sim_actor_is(socket, peer_new(server, socket));
    if (server->is_frozen)
        sim_actor_hold(socket, true);
}

static void on_received(struct sim_socket *socket, void *arg, const char *bytes, size_t length)
{
    struct peer *peer = arg;

    (void)socket;
    if (!peer->client)
        return;
    peer_receive(peer, bytes, length);
    peer_look(peer);
}

static void on_closed(struct sim_socket *socket, void *arg)
{
    struct peer *peer = arg;
    struct simredis_client *client = peer->client;

    (void)socket;
    peer->socket = NULL;
    peer->client = NULL;
    peer->waiting_len = 0;
    if (client)
        simredis_disconnect(client);
    peer_look(peer);
}

static const struct sim_actor ACTOR = {
    .connected = on_connected, .received = on_received, .closed = on_closed, .has_room = on_room};

/* A replica's connection to its master */

static void on_master_up(struct sim_socket *socket, void *arg)
{
    struct peer *peer = arg;

    if (peer->server->is_frozen)
        sim_actor_hold(socket, true);
    if (!peer->is_master)
        return;
    simredis_master_up(peer->server->redis);
    look_ahead(peer->server);
}

static void on_master_received(struct sim_socket *socket, void *arg, const char *bytes, size_t length)
{
    struct peer *peer = arg;

    (void)socket;
    if (!peer->is_master)
        return;
    peer->is_busy = true;
    simredis_master_receive(peer->server->redis, bytes, length);
    peer->is_busy = false;
    look_ahead(peer->server);
    peer_look(peer);
}

static void on_master_closed(struct sim_socket *socket, void *arg)
{
    struct peer *peer = arg;
    struct sim_server *server = peer->server;
    const bool was_master = peer->is_master;

    (void)socket;
    peer->socket = NULL;
    peer->is_master = false;
    peer->waiting_len = 0;
    peer_look(peer);
    if (!was_master)
        return;
    simredis_master_lost(server->redis);
    look_ahead(server);
}

static const struct sim_actor UPSTREAM = {
    .connected = on_master_up, .received = on_master_received, .closed = on_master_closed, .has_room = on_room};

/* Only hosts have replicas. */
static void *dial(void *context, const char *host, uint16_t port)
{
    struct sim_server *server = context;
    struct peer *peer;
    struct in_addr ip;

    if (!server->host || inet_pton(AF_INET, host, &ip) != 1 || !sim_host_at(ip))
        return NULL;
    peer = mem_alloc(sizeof *peer);
    *peer = (struct peer){.server = server, .is_master = true};
    list_append(&server->peers, &peer->of_server);
    peer->socket = sim_actor_connect(server->host, ip, port, &UPSTREAM, peer);
    return peer;
}

static void append(void *context, const char *bytes, size_t length)
{
    const struct sim_server *server = context;

    CHECK(write(server->file, bytes, length) == (ssize_t)length);
}

/* Members */

static void heard(void *arg, const char *bytes, size_t length)
{
    struct sim_server *server = arg;

    simredis_hear(server->redis, bytes, length);
    look_ahead(server);
}

static void tell_member(void *context, const char *host, uint16_t port, const char *bytes, size_t length)
{
    struct sim_server *server = context;
    struct in_addr ip;

    (void)port;
    CHECK(inet_pton(AF_INET, host, &ip) == 1);
    sim_bus_tell(server->bus, ip, bytes, length);
}

/* A peer without a connection. */
static void ask_at_once(struct sim_server *server, const char *bytes, size_t length, struct buf *ret_replies)
{
    struct peer *peer = peer_new(server, NULL);

    peer->replies = ret_replies;
    peer_receive(peer, bytes, length);
    if (peer->client)
        simredis_disconnect(peer->client);
    peer_free(peer);
}

/* MIGRATE, which takes no time. */
static bool ask_member(void *context, const char *host, uint16_t port, const char *bytes, size_t length,
                       struct buf *ret_replies)
{
    const struct sim_server *server = context;
    struct in_addr ip;

    (void)port;
    CHECK(inet_pton(AF_INET, host, &ip) == 1);
    for (struct list *node = members.next; node != &members; node = node->next) {
        struct sim_server *other = LIST_ENTRY(node, struct sim_server, of_members);

        if (other->host->ip.s_addr != ip.s_addr || !other->redis || sim_is_cut(server->host, other->host) ||
            sim_is_cut(other->host, server->host))
            continue;
        ask_at_once(other, bytes, length, ret_replies);
        return true;
    }
    return false;
}

static void join(struct sim_server *server)
{
    static const struct simredis_bus BUS = {tell_member, ask_member};

    server->bus = sim_bus_start(server->host, heard, server);
    CHECK(simredis_configure(server->redis, "cluster-node-timeout", NODE_TIMEOUT_MS) &&
          simredis_configure(server->redis, "cluster-require-full-coverage", "no") &&
          simredis_join(server->redis, &BUS, server->nodes));
}

static void begin(struct sim_server *server, const char *data, size_t len)
{
    const struct simredis_host host = {.context = server,
                                       .unix_us = unix_us,
                                       .random = draw,
                                       .send = send_bytes,
                                       .close = close_client,
                                       .dial = dial,
                                       .log = server->host || server->file < 0 ? NULL : append};

    server->redis = simredis_new(&host);
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++)
        CHECK(simredis_configure(server->redis, SETTINGS[i][0], SETTINGS[i][1]));
    if (data)
        CHECK(simredis_load(server->redis, data, len));
    for (size_t i = 0; i < server->setting_count; i++)
        CHECK(simredis_configure(server->redis, server->settings[i].name, server->settings[i].value));
    if (server->nodes)
        join(server);
    if (server->host)
        server->listener = sim_actor_listen(server->host, PORT, &ACTOR, server);
    for (size_t i = 0; i < server->listener_count; i++)
        sim_actor_take(server->listeners[i], &ACTOR, server);
    look_ahead(server);
}

static void save(struct sim_server *server, struct bytes *ret_data)
{
    free(ret_data->ptr);
    ret_data->ptr = simredis_save(server->redis, &ret_data->len);
}

struct sim_server *sim_server_start(struct sim_host *host)
{
    struct sim_server *server = mem_alloc(sizeof *server);

    *server = (struct sim_server){.host = host, .turn.run = on_turn};
    list_init(&server->peers);
    begin(server, NULL, 0);
    return server;
}

struct sim_server *sim_server_start_member(struct sim_host *host, const char *nodes)
{
    struct sim_server *server = mem_alloc(sizeof *server);

    *server = (struct sim_server){.host = host, .turn.run = on_turn, .nodes = mem_copy_text(nodes, strlen(nodes))};
    list_init(&server->peers);
    list_append(&members, &server->of_members);
    begin(server, NULL, 0);
    return server;
}

const char *sim_server_name(const struct sim_server *server)
{
    return server->host->name;
}

void sim_server_copy(struct sim_server *server)
{
    save(server, &server->copy);
}

void sim_server_tell(struct sim_server *server, const char *command)
{
    struct buf request;

    if (!server->redis)
        return;
    sim_trace(server->host->name, "redis is told: %s", command);
    buf_init(&request, SIZE_MAX / 2);
    buf_append_str(&request, command);
    buf_append_str(&request, "\r\n");
    ask_at_once(server, request.ptr, request.len, NULL);
    buf_finish(&request);
}

bool sim_server_ask(struct sim_server *server, const struct text *argv, size_t argc, struct buf *ret_reply)
{
    struct buf request;

    if (!server->redis)
        return false;
    buf_init(&request, SIZE_MAX / 2);
    buf_printf(&request, "*%zu\r\n", argc);
    for (size_t i = 0; i < argc; i++) {
        buf_printf(&request, "$%zu\r\n", argv[i].len);
        buf_append_text(&request, argv[i]);
        buf_append_str(&request, "\r\n");
    }
    ask_at_once(server, request.ptr, request.len, ret_reply);
    buf_finish(&request);
    return true;
}

bool sim_server_is_up(const struct sim_server *server)
{
    return server->redis;
}

bool sim_server_has(struct sim_server *server, const char *key)
{
    const struct text argv[] = {TEXT("EXISTS"), text_of(key)};
    struct buf reply;
    bool has;

    buf_init(&reply, SIZE_MAX / 2);
    has = sim_server_ask(server, argv, 2, &reply) && text_equal(buf_text(&reply), TEXT(":1\r\n"));
    buf_finish(&reply);
    return has;
}

static void keep_setting(struct sim_server *server, const char *name, const char *value)
{
    struct setting *setting = server->settings;

    while (setting < server->settings + server->setting_count && strcmp(setting->name, name) != 0)
        setting++;
    CHECK(setting < server->settings + SETTINGS_MAX);
    if (setting == server->settings + server->setting_count)
        server->setting_count++;
    snprintf(setting->name, sizeof setting->name, "%s", name);
    snprintf(setting->value, sizeof setting->value, "%s", value);
}

void sim_server_configure(struct sim_server *server, const char *name, const char *value)
{
    keep_setting(server, name, value);
    if (!server->redis)
        return;
    CHECK(simredis_configure(server->redis, name, value));
    look_ahead(server);
}

void sim_server_empty(struct sim_server *server)
{
    save(server, &server->disk);
    sim_server_tell(server, "FLUSHALL");
}

void sim_server_refill(struct sim_server *server)
{
    sim_server_tell(server, "FLUSHALL");
    CHECK(simredis_load(server->redis, server->disk.ptr, server->disk.len));
    look_ahead(server);
}

static void stop(struct sim_server *server)
{
    struct list *node;

    if (server->nodes) {
        sim_bus_stop(server->bus);
        free(server->nodes);
        server->nodes = simredis_nodes(server->redis);
    }
    if (server->listener)
        sim_actor_close(server->listener);
    for (size_t i = 0; i < server->listener_count; i++)
        close(server->listeners[i]);
    while ((node = list_first(&server->peers))) {
        struct peer *peer = LIST_ENTRY(node, struct peer, of_server);

        if (peer->client)
            simredis_disconnect(peer->client);
        if (peer->socket)
            sim_actor_close(peer->socket);
        peer_free(peer);
    }
    simredis_free(server->redis);
    server->redis = NULL;
    sim_event_cancel(&server->turn);
}

void sim_server_kill(struct sim_server *server)
{
    sim_trace(server->host->name, "redis is killed");
    save(server, &server->disk);
    keep_setting(server, "replicaof", simredis_setting(server->redis, "replicaof"));
    server->is_frozen = false;
    stop(server);
}

void sim_server_restart(struct sim_server *server, enum sim_disk disk)
{
    const struct bytes *data = disk == SIM_DISK_COPY ? &server->copy : &server->disk;

    sim_trace(server->host->name, "redis is started again, as it was%s", disk == SIM_DISK_COPY ? " at the copy" : "");
    begin(server, data->ptr, data->len);
}

/* Without hosts */

static struct bytes read_file(int fd)
{
    struct stat file;
    struct bytes data;

    CHECK(fstat(fd, &file) == 0);
    data = (struct bytes){.ptr = mem_alloc((size_t)file.st_size + 1), .len = (size_t)file.st_size};
    CHECK(read(fd, data.ptr, data.len) == (ssize_t)data.len);
    return data;
}

struct sim_server *sim_server_start_here(const int *listeners, size_t count, const char *file)
{
    struct sim_server *server = mem_alloc(sizeof *server);
    struct bytes data = {NULL, 0};

    CHECK(count <= SIM_SERVER_LISTENERS);
    *server = (struct sim_server){.turn.run = on_turn, .listener_count = count, .file = -1};
    memcpy(server->listeners, listeners, count * sizeof *listeners);
    list_init(&server->peers);
    sim_shift_init(&server->shift, environ);
    if (file) {
        server->file = open(file, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        CHECK(server->file >= 0);
        data = read_file(server->file);
    }
    begin(server, data.ptr, data.len);
    sim_server_configure(server, "port", "0");
    free(data.ptr);
    return server;
}

void sim_server_freeze(struct sim_server *server, bool is_frozen)
{
    server->is_frozen = is_frozen;
    for (struct list *node = server->peers.next; node != &server->peers; node = node->next)
        if (LIST_ENTRY(node, struct peer, of_server)->socket)
            sim_actor_hold(LIST_ENTRY(node, struct peer, of_server)->socket, is_frozen);
    look_ahead(server);
}

void sim_server_end(struct sim_server *server)
{
    stop(server);
    if (server->file >= 0)
        close(server->file);
    sim_shift_finish(&server->shift);
    free(server);
}

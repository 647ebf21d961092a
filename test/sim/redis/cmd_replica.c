/* A replica: it takes all data from its master, then each of its writes, and passes them on to replicas of its own. */
#include "base/check.h"
#include "commands.h"
#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { US_PER_S = 1000 * 1000 };

static void tell_master(struct simredis *server, size_t argc, const struct text *argv)
{
    struct buf line;

    buf_init(&line, SIZE_MAX / 2);
    out_array(&line, argc);
    for (size_t i = 0; i < argc; i++)
        out_text(&line, argv[i]);
    server->host.send(server->upstream.link, line.ptr, line.len);
    buf_finish(&line);
}

#define TELL_MASTER(server, ...) \
    tell_master(server, sizeof((struct text[]){__VA_ARGS__}) / sizeof(struct text), (struct text[]){__VA_ARGS__})

static void send_ack(struct simredis *server)
{
    char storage[NUMBER_BYTES];

    TELL_MASTER(server, TEXT("REPLCONF"), TEXT("ACK"), number_print_i64(storage, (int64_t)server->offset));
}

static void look_for_master(struct simredis *server)
{
    struct upstream *up = &server->upstream;

    if (up->state != UPSTREAM_CONNECT || !server->host.dial)
        return;
    up->link = server->host.dial(server->host.context, server->master_host, server->master_port);
    up->heard_us = server->now_us;
    if (up->link)
        up->state = UPSTREAM_CONNECTING;
}

/* What came in part is lost. */
static void lose_master(struct simredis *server)
{
    struct upstream *up = &server->upstream;

    if (up->state == UPSTREAM_CONNECTED)
        up->lost_us = server->now_us;
    if (up->link)
        server->host.close(up->link);
    up->link = NULL;
    buf_clear(&up->in);
    up->state = server->master_host ? UPSTREAM_CONNECT : UPSTREAM_NONE;
}

void replica_finish(struct simredis *server)
{
    free(server->master_host);
    buf_finish(&server->upstream.in);
}

static void note_setting(struct simredis *server)
{
    struct buf value = BUF_FIXED(256);

    if (server->master_host)
        buf_printf(&value, "%s %u", server->master_host, server->master_port);
    dict_set_text(dict_find(&server->settings, TEXT("replicaof")), buf_text(&value));
}

/* The history up to here was the master's; from here on it is another one. */
static void become_master(struct simredis *server)
{
    memcpy(server->replid2, server->replid, sizeof server->replid2);
    server->second_offset = (int64_t)server->offset + 1;
    sim_new_run_id(server, server->replid);
    replicas_close(server);
    server->stream.db = UINT_MAX;
}

void replica_follow(struct simredis *server, struct text host, uint16_t port)
{
    const bool was_master = !server->master_host;
    char *copy = host.ptr ? mem_copy_text(host.ptr, host.len) : NULL;

    free(server->master_host);
    server->master_host = NULL;
    lose_master(server);
    server->master_host = copy;
    server->master_port = port;
    note_setting(server);
    if (copy) {
        replicas_unblock(server);
        server->upstream.state = UPSTREAM_CONNECT;
        server->upstream.lost_us = server->now_us;
        look_for_master(server);
    } else if (!was_master) {
        become_master(server);
    }
}

void cmd_replicaof(struct call *call)
{
    struct simredis *server = call->server;
    int64_t port = 0;

    if (server->cluster) {
        say_error(call, "ERR REPLICAOF not allowed in cluster mode.");
        return;
    }
    if (arg_is(call, 1, "NO") && arg_is(call, 2, "ONE")) {
        replica_follow(server, (struct text){0}, 0);
        say_ok(call);
        return;
    }
    if (!number_parse_i64(call->argv[2], &port) || port < 0 || port > 65535) {
        say_error(call, "ERR Invalid master port");
        return;
    }
    if (server->master_host && server->master_port == port &&
        text_equal_nocase(call->argv[1], text_of(server->master_host))) {
        say_status(call, "OK Already connected to specified master");
        return;
    }
    replica_follow(server, call->argv[1], (uint16_t)port);
    say_ok(call);
}

/* What comes */

static void greet_master(struct simredis *server)
{
    const struct text password = setting(server, "masterauth"), ip = setting(server, "replica-announce-ip");
    struct text port = setting(server, "replica-announce-port");

    if (text_equal(port, TEXT("0")))
        port = setting(server, "port");
    if (password.len > 0)
        TELL_MASTER(server, TEXT("AUTH"), password);
    TELL_MASTER(server, TEXT("REPLCONF"), TEXT("listening-port"), port);
    if (ip.len > 0)
        TELL_MASTER(server, TEXT("REPLCONF"), TEXT("ip-address"), ip);
    TELL_MASTER(server, TEXT("PSYNC"), TEXT("?"), TEXT("-1"));
}

/* All data, in place of its own. Its own replicas must come for them again. */
static void take_data(struct simredis *server, struct text data)
{
    struct upstream *up = &server->upstream;

    replicas_close(server);
    for (size_t i = 0; i < SIM_DATABASES; i++)
        database_clear(&server->databases[i]);
    CHECK(simredis_load(server, data.ptr, data.len));
    if (server->host.log) {
        static const char FLUSH[] = "*1\r\n$8\r\nFLUSHALL\r\n";

        server->host.log(server->host.context, FLUSH, strlen(FLUSH));
        server->host.log(server->host.context, data.ptr, data.len);
    }
    up->db = server->disk.db;
    memcpy(server->replid, up->replid, sizeof server->replid);
    memset(server->replid2, '0', SIM_RUN_ID_CHARS);
    server->second_offset = -1;
    server->offset = up->offset;
    server->has_stream = true;
    up->state = UPSTREAM_CONNECTED;
    send_ack(server);
}

/* A line of the master's without its end. */
static bool take_line(struct buf *in, struct text *ret_line)
{
    const char *end = in->len > 0 ? memmem(in->ptr, in->len, "\r\n", 2) : NULL;

    *ret_line = (struct text){in->ptr, end ? (size_t)(end - in->ptr) : 0};
    return end;
}

/* False: that is all for now. */
static bool read_greeting(struct simredis *server)
{
    struct upstream *up = &server->upstream;
    struct text line, word;

    if (!take_line(&up->in, &line))
        return false;
    const size_t bytes = line.len + 2;
    if (line.len == 0 || line.ptr[0] != '+') {
        lose_master(server);
        return false;
    }
    if (text_starts_with(line, TEXT("+FULLRESYNC "))) {
        CHECK(text_next(&line, ' ', &word) && text_next(&line, ' ', &word) && word.len == SIM_RUN_ID_CHARS &&
              text_to_u64(line, UINT64_MAX, &up->offset));
        memcpy(up->replid, word.ptr, SIM_RUN_ID_CHARS);
        up->state = UPSTREAM_SYNC;
    }
    buf_consume(&up->in, bytes);
    return true;
}

static bool read_data(struct simredis *server)
{
    struct upstream *up = &server->upstream;
    struct text line;
    uint64_t bytes;

    if (!take_line(&up->in, &line))
        return false;
    CHECK(line.ptr[0] == '$' && text_to_u64(text_skip(line, 1), SIZE_MAX / 4, &bytes));
    if (up->in.len < line.len + 2 + bytes)
        return false;
    take_data(server, (struct text){line.ptr + line.len + 2, bytes});
    buf_consume(&up->in, line.len + 2 + bytes);
    return true;
}

static bool is_said(const struct request *request, const char *command)
{
    return text_equal_nocase(request->argv[0], text_of(command));
}

static void apply(struct simredis *server, const struct request *request)
{
    struct upstream *up = &server->upstream;

    if (is_said(request, "PING"))
        return;
    if (is_said(request, "REPLCONF")) {
        send_ack(server);
    } else if (is_said(request, "PUBLISH") || is_said(request, "SPUBLISH")) {
        publish(server, is_said(request, "PUBLISH") ? CHANNEL : SHARD_CHANNEL, request->argv[1], request->argv[2]);
    } else {
        CHECK(commands_run(server, &up->db, request));
        if (server->host.log && !is_said(request, "SELECT") && !is_said(request, "MULTI") && !is_said(request, "EXEC"))
            log_put(&server->disk, up->db, request->argc, request->argv);
    }
}

/* A group of commands at once, or not at all. */
static bool read_stream(struct simredis *server)
{
    struct upstream *up = &server->upstream;
    struct text rest = {up->in.ptr, commands_whole(buf_text(&up->in))};
    const size_t bytes = rest.len;
    struct request request;

    while (rest.len > 0 && request_read(rest, &request) == REQUEST_WHOLE) {
        apply(server, &request);
        replicas_feed(server, (struct text){rest.ptr, request.bytes});
        rest = text_skip(rest, request.bytes);
        request_finish(&request);
    }
    buf_consume(&up->in, bytes);
    return false;
}

void simredis_master_up(struct simredis *server)
{
    sim_read_clock(server);
    server->upstream.state = UPSTREAM_HANDSHAKE;
    server->upstream.heard_us = server->now_us;
    greet_master(server);
}

void simredis_master_receive(struct simredis *server, const char *bytes, size_t length)
{
    static bool (*const READ[])(struct simredis * server) = {
        [UPSTREAM_HANDSHAKE] = read_greeting, [UPSTREAM_SYNC] = read_data, [UPSTREAM_CONNECTED] = read_stream};

    sim_read_clock(server);
    server->upstream.heard_us = server->now_us;
    buf_append(&server->upstream.in, bytes, length);
    while (server->upstream.in.len > 0 && READ[server->upstream.state](server))
        continue;
    sim_flush(server);
}

void simredis_master_lost(struct simredis *server)
{
    sim_read_clock(server);
    server->upstream.link = NULL;
    lose_master(server);
}

void replica_cron(struct simredis *server)
{
    struct upstream *up = &server->upstream;
    const uint64_t timeout_us = setting_number(server, "repl-timeout") * US_PER_S;

    if (up->link && server->now_us > up->heard_us + timeout_us)
        lose_master(server);
    look_for_master(server);
    if (up->state == UPSTREAM_CONNECTED)
        send_ack(server);
}

/* What it says of itself */

static const char *state_of(const struct simredis *server)
{
    static const char *const STATES[] = {[UPSTREAM_CONNECT] = "connect",
                                         [UPSTREAM_CONNECTING] = "connecting",
                                         [UPSTREAM_HANDSHAKE] = "handshake",
                                         [UPSTREAM_SYNC] = "sync",
                                         [UPSTREAM_CONNECTED] = "connected"};

    return STATES[server->upstream.state];
}

void cmd_role(struct call *call)
{
    const struct simredis *server = call->server;

    if (!server->master_host) {
        replicas_say_role(call);
        return;
    }
    say_array(call, 5);
    say_text(call, TEXT("slave"));
    say_text(call, text_of(server->master_host));
    say_integer(call, server->master_port);
    say_text(call, text_of(state_of(server)));
    say_integer(call, server->upstream.state == UPSTREAM_CONNECTED ? (int64_t)server->offset : -1);
}

static void print_upstream(const struct simredis *server, struct buf *out)
{
    const struct upstream *up = &server->upstream;
    const bool is_up = up->state == UPSTREAM_CONNECTED;

    buf_printf(out,
               "role:slave\r\nmaster_host:%s\r\nmaster_port:%u\r\nmaster_link_status:%s\r\n"
               "master_last_io_seconds_ago:%" PRId64 "\r\nmaster_sync_in_progress:%d\r\nslave_read_repl_offset:%" PRIu64
               "\r\nslave_repl_offset:%" PRIu64 "\r\n",
               server->master_host, server->master_port, is_up ? "up" : "down",
               is_up ? (int64_t)((server->now_us - up->heard_us) / US_PER_S) : -1, up->state == UPSTREAM_SYNC,
               server->offset, server->offset);
    if (!is_up)
        buf_printf(out, "master_link_down_since_seconds:%" PRIu64 "\r\n", (server->now_us - up->lost_us) / US_PER_S);
    buf_append_str(out, "slave_priority:100\r\nslave_read_only:1\r\nreplica_announced:1\r\n");
}

void replica_info(const struct simredis *server, struct buf *out)
{
    buf_append_str(out, "# Replication\r\n");
    if (server->master_host)
        print_upstream(server, out);
    else
        buf_append_str(out, "role:master\r\n");
    replicas_print(server, out);
    buf_printf(
        out,
        "master_failover_state:no-failover\r\nmaster_replid:%s\r\nmaster_replid2:%s\r\nmaster_repl_offset:%" PRIu64
        "\r\nsecond_repl_offset:%" PRId64 "\r\n",
        server->replid, server->replid2, server->offset, server->second_offset);
}

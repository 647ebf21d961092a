/* What a server says about itself, and what clients are. */
#include "commands.h"
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void cmd_ping(struct call *call)
{
    struct text text = call->argc > 1 ? call->argv[1] : (struct text){0};

    if (call->argc > 2) {
        say_errorf(call, "ERR wrong number of arguments for '%s' command", call->command->name);
    } else if (call->client && client_subscriptions(call->client) > 0) {
        say_array(call, 2);
        say_text(call, TEXT("pong"));
        say_text(call, text);
    } else if (call->argc > 1) {
        say_text(call, text);
    } else {
        say_status(call, "PONG");
    }
}

void cmd_echo(struct call *call)
{
    say_text(call, call->argv[1]);
}

void cmd_time(struct call *call)
{
    char storage[NUMBER_BYTES];

    say_array(call, 2);
    say_text(call, number_print_i64(storage, (int64_t)(call->server->now_us / 1000000)));
    say_text(call, number_print_i64(storage, (int64_t)(call->server->now_us % 1000000)));
}

void cmd_quit(struct call *call)
{
    say_ok(call);
    sim_close_client(call->client);
}

void cmd_auth(struct call *call)
{
    struct text name = call->argc == 3 ? call->argv[1] : TEXT("default");
    struct acl_user *user = acl_log_in(call->server, name, call->argv[call->argc - 1]);

    if (call->argc > 3) {
        say_syntax(call);
    } else if (call->argc == 2 && acl_usual(call->server)) {
        say_error(call, "ERR AUTH <password> called without any password configured for the default user. Are you sure "
                        "your configuration is correct?");
    } else if (!user) {
        say_error(call, "WRONGPASS invalid username-password pair or user is disabled.");
    } else {
        call->client->user = user;
        say_ok(call);
    }
}

void cmd_select(struct call *call)
{
    int64_t db;

    if (!arg_i64(call, 1, &db))
        return;
    if (db < INT32_MIN || db > INT32_MAX) {
        say_error(call, "ERR value is out of range, value must between -2147483648 and 2147483647");
        return;
    }
    if (db != 0 && call->server->cluster) {
        say_error(call, "ERR SELECT is not allowed in cluster mode");
        return;
    }
    if (db < 0 || db >= SIM_DATABASES) {
        say_error(call, "ERR DB index is out of range");
        return;
    }
    if (call->server->in_script)
        call->server->script_call->db = &call->server->databases[db];
    else
        call->client->db = (unsigned)db;
    say_ok(call);
}

/* The bytes of names and values, with what an entry takes: enough to tell a full memory from one that is not. */
static uint64_t value_bytes(const struct value *value)
{
    enum { ENTRY_BYTES = 64 };
    uint64_t bytes = ENTRY_BYTES + value->string.len;
    struct dict_entry *entry;

    for (size_t place = 0; (entry = dict_next(&value->dict, &place));)
        bytes += ENTRY_BYTES + entry->key.len + entry->text.len;
    for (size_t i = 0; i < zset_count(&value->zset); i++)
        bytes += ENTRY_BYTES + value->zset.order[i]->key.len;
    for (size_t i = 0; i < value->item_count; i++)
        bytes += value->items[i].len;
    for (size_t i = 0; i < value->stream.node_count; i++)
        bytes += value->stream.nodes[i].bytes;
    return bytes;
}

uint64_t sim_used_bytes(const struct simredis *server)
{
    enum { SERVER_BYTES = 1024 * 1024 };
    uint64_t bytes = SERVER_BYTES;

    for (size_t i = 0; i < SIM_DATABASES; i++) {
        struct dict_entry *entry;

        for (size_t place = 0; (entry = dict_next(&server->databases[i].values, &place));)
            bytes += entry->key.len + value_bytes(entry->object);
    }
    return bytes;
}

static void info_server(const struct simredis *server, struct buf *out)
{
    buf_printf(out,
               "# Server\r\nredis_version:7.0.15\r\nredis_mode:%s\r\nrun_id:%s\r\ntcp_port:%.*s\r\n"
               "uptime_in_seconds:%" PRIu64 "\r\n",
               server->cluster ? "cluster" : "standalone", server->run_id, TEXT_ARG(setting(server, "port")),
               (server->now_us - server->started_us) / 1000000);
}

static void info_memory(const struct simredis *server, struct buf *out)
{
    buf_printf(out, "# Memory\r\nused_memory:%" PRIu64 "\r\nmaxmemory:%.*s\r\nmaxmemory_policy:%.*s\r\n",
               sim_used_bytes(server), TEXT_ARG(setting(server, "maxmemory")),
               TEXT_ARG(setting(server, "maxmemory-policy")));
}

static void info_persistence(const struct simredis *server, struct buf *out)
{
    buf_printf(out, "# Persistence\r\nloading:0\r\naof_enabled:%d\r\naof_last_write_status:ok\r\n",
               text_equal(setting(server, "appendonly"), TEXT("yes")));
}

static void info_cluster(const struct simredis *server, struct buf *out)
{
    buf_printf(out, "# Cluster\r\ncluster_enabled:%d\r\n", server->cluster != NULL);
}

static void info_commandstats(const struct simredis *server, struct buf *out)
{
    struct dict_entry *entry;
    size_t place = 0;

    buf_append_str(out, "# Commandstats\r\n");
    while ((entry = dict_next(&server->calls, &place)))
        buf_printf(out, "cmdstat_%.*s:calls=%.0f,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0\r\n",
                   TEXT_ARG(entry->key), entry->score);
}

void cmd_info(struct call *call)
{
    static const struct {
        const char *name;
        void (*print)(const struct simredis *server, struct buf *out);
    } SECTIONS[] = {{"server", info_server},       {"memory", info_memory},   {"persistence", info_persistence},
                    {"replication", replica_info}, {"cluster", info_cluster}, {"commandstats", info_commandstats}};
    struct buf out;

    buf_init(&out, SIZE_MAX / 2);
    for (size_t i = 0; i < sizeof SECTIONS / sizeof *SECTIONS; i++) {
        bool is_asked = call->argc == 1 && SECTIONS[i].print != info_commandstats;

        for (size_t at = 1; at < call->argc; at++)
            is_asked |= arg_is(call, at, SECTIONS[i].name) || arg_is(call, at, "all") || arg_is(call, at, "everything");
        if (!is_asked)
            continue;
        buf_append_str(&out, out.len > 0 ? "\r\n" : "");
        SECTIONS[i].print(call->server, &out);
    }
    say_text(call, buf_text(&out));
    buf_finish(&out);
}

void cmd_wait(struct call *call)
{
    struct simredis_client *client = call->client;
    int64_t replicas, timeout_ms;

    if (call->server->master_host) {
        say_error(call,
                  "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica "
                  "is configured to be writable (which is not the default) writes to replicas are just local and "
                  "are not propagated.");
        return;
    }
    if (!arg_i64(call, 1, &replicas))
        return;
    if (!number_parse_i64(call->argv[2], &timeout_ms)) {
        say_error(call, "ERR timeout is not an integer or out of range");
        return;
    }
    if (timeout_ms < 0) {
        say_error(call, "ERR timeout is negative");
        return;
    }
    const int64_t acked = replicas_acked(call->server, client->write_offset);
    if (acked >= (int32_t)replicas) { /* Redis keeps the number of a client that waits in an int */
        say_integer(call, acked);
        return;
    }
    client->wait_replicas = replicas;
    client->wait_offset = client->write_offset;
    client->wait_until = timeout_ms == 0 ? UINT64_MAX : call->server->now_us + (uint64_t)timeout_ms * 1000;
    call->server->asks_acks = replicas_are_there(call->server);
}

void cmd_client_setname(struct call *call)
{
    struct text name = call->argv[2];

    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] >= '!' && name.ptr[i] <= '~')
            continue;
        say_error(call, "ERR Client names cannot contain spaces, newlines or special characters.");
        return;
    }
    free(call->client->name);
    call->client->name = name.len > 0 ? mem_copy_text(name.ptr, name.len) : NULL;
    say_ok(call);
}

void cmd_client_getname(struct call *call)
{
    if (call->client->name)
        say_text(call, text_of(call->client->name));
    else
        say_nil(call);
}

void cmd_client_id(struct call *call)
{
    say_integer(call, (int64_t)call->client->id);
}

static const char *kind_of(const struct simredis_client *client)
{
    if (client->is_replica)
        return "replica";
    return client_subscriptions(client) > 0 ? "pubsub" : "normal";
}

void cmd_client_list(struct call *call)
{
    struct simredis *server = call->server;
    struct buf out;

    buf_init(&out, SIZE_MAX / 2);
    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        const struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);

        if (call->argc == 4 && arg_is(call, 2, "TYPE") && !arg_is(call, 3, kind_of(client)))
            continue;
        buf_printf(&out,
                   "id=%" PRIu64 " addr=client:%" PRIu64
                   " name=%s db=%u sub=%zu psub=%zu ssub=%zu user=%.*s redir=-1 resp=2\n",
                   client->id, client->id, client->name ? client->name : "", client->db,
                   client->channels[CHANNEL].count, client->channels[PATTERN].count,
                   client->channels[SHARD_CHANNEL].count,
                   TEXT_ARG(client->user ? acl_name(client->user) : TEXT("default")));
    }
    say_text(call, buf_text(&out));
    buf_finish(&out);
}

struct kill {
    uint64_t id; /* 0: any */
    struct text type;
    struct acl_user *user; /* NULL: any */
    bool spares_me;
};

/* ID, TYPE, USER and SKIPME. False: the error is said. */
static bool read_kill(struct call *call, struct kill *kill)
{
    int64_t id;

    *kill = (struct kill){.spares_me = true};
    for (size_t i = 2; i < call->argc; i += 2) {
        bool is_more = i + 1 < call->argc;

        if (is_more && arg_is(call, i, "ID")) {
            if (!number_parse_i64(call->argv[i + 1], &id) || id < 1) {
                say_error(call, "ERR client-id should be greater than 0");
                return false;
            }
            kill->id = (uint64_t)id;
        } else if (is_more && arg_is(call, i, "TYPE")) {
            kill->type = call->argv[i + 1];
        } else if (is_more && arg_is(call, i, "USER")) {
            kill->user = acl_find(call->server, call->argv[i + 1]);
            if (!kill->user) {
                say_errorf(call, "ERR No such user '%s'", call->argv[i + 1].ptr);
                return false;
            }
        } else if (is_more && arg_is(call, i, "SKIPME") && (arg_is(call, i + 1, "yes") || arg_is(call, i + 1, "no"))) {
            kill->spares_me = arg_is(call, i + 1, "yes");
        } else {
            say_syntax(call);
            return false;
        }
    }
    return true;
}

void cmd_client_kill(struct call *call)
{
    struct simredis *server = call->server;
    struct kill kill;
    int64_t killed = 0;

    if (!read_kill(call, &kill))
        return;
    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);

        if (client->is_closing || (kill.id > 0 && client->id != kill.id) ||
            (kill.spares_me && client == call->client) || (kill.user && client->user != kill.user) ||
            (kill.type.ptr && !text_equal_nocase(kill.type, text_of(kind_of(client)))))
            continue;
        sim_close_client(client);
        killed++;
    }
    say_integer(call, killed);
}

void cmd_client_pause(struct call *call)
{
    int64_t ms;

    if (!number_parse_i64(call->argv[2], &ms) || ms < 0) {
        say_error(call, "ERR timeout is not an integer or out of range");
        return;
    }
    if (call->argc > 3 && !arg_is(call, 3, "WRITE") && !arg_is(call, 3, "ALL")) {
        say_error(call, "ERR CLIENT PAUSE mode must be WRITE or ALL");
        return;
    }
    call->server->pause_until_us = call->server->now_us + (uint64_t)ms * 1000;
    call->server->pauses_writes_only = arg_is(call, 3, "WRITE");
    say_ok(call);
}

/* simredis_run() lets them go on. */
void cmd_client_unpause(struct call *call)
{
    call->server->pause_until_us = 0;
    say_ok(call);
}

void cmd_debug(struct call *call)
{
    if (call->argc == 3 && arg_is(call, 1, "SET-ACTIVE-EXPIRE")) {
        call->server->expires_only_seen = arg_is(call, 2, "0");
        say_ok(call);
    } else {
        cmd_unknown(call);
    }
}

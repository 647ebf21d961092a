/* A server with replicas: they are clients who have said PSYNC, and hear all that it writes. */
#include "commands.h"
#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { US_PER_S = 1000 * 1000 };

/* The replica behind that one; NULL: there is none. before NULL: the first. */
static struct simredis_client *replica_after(const struct simredis *server, const struct simredis_client *before)
{
    const struct list *node = before ? before->node.next : server->clients.next;

    for (; node != &server->clients; node = node->next) {
        struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);

        if (client->is_replica && !client->is_closing)
            return client;
    }
    return NULL;
}

#define FOR_REPLICAS(server, replica)                                                      \
    for (struct simredis_client *replica = replica_after(server, NULL); (replica) != NULL; \
         (replica) = replica_after(server, replica))

bool replicas_are_there(const struct simredis *server)
{
    return replica_after(server, NULL);
}

void replicas_feed(struct simredis *server, struct text bytes)
{
    server->offset += bytes.len;
    FOR_REPLICAS(server, replica)
    buf_append_text(&replica->out, bytes);
}

int64_t replicas_acked(const struct simredis *server, uint64_t offset)
{
    int64_t count = 0;

    FOR_REPLICAS(server, replica)
    count += replica->is_online && replica->acked_offset >= offset;
    return count;
}

static uint64_t lag_s(const struct simredis *server, const struct simredis_client *replica)
{
    return server->now_us / US_PER_S - replica->acked_us / US_PER_S;
}

/* Each second, and when one comes or goes: so a master that was frozen goes on by its old count for a while. */
void replicas_count(struct simredis *server)
{
    const uint64_t most_s = setting_number(server, "min-replicas-max-lag");

    server->good_replicas = 0;
    FOR_REPLICAS(server, replica)
    server->good_replicas += replica->is_online && lag_s(server, replica) <= most_s;
}

bool replicas_suffice(const struct simredis *server)
{
    return setting_number(server, "min-replicas-max-lag") == 0 ||
           server->good_replicas >= (int64_t)setting_number(server, "min-replicas-to-write");
}

void replicas_close(struct simredis *server)
{
    FOR_REPLICAS(server, replica)
    sim_close_client(replica);
    replicas_count(server);
}

void replicas_unblock(struct simredis *server)
{
    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);

        if (client->wait_until == 0)
            continue;
        buf_append_str(&client->out,
                       "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
                       "replica?)\r\n");
        sim_close_client(client);
    }
}

void replicas_cron(struct simredis *server)
{
    const uint64_t timeout_us = setting_number(server, "repl-timeout") * US_PER_S;
    const uint64_t ping_us = setting_number(server, "repl-ping-replica-period") * US_PER_S;

    FOR_REPLICAS(server, replica)
    if (server->now_us > replica->acked_us + timeout_us)
        sim_close_client(replica);
    if (!server->master_host && replicas_are_there(server) && server->now_us >= server->pinged_us + ping_us) {
        server->pinged_us = server->now_us;
        replicas_feed(server, TEXT("*1\r\n$4\r\nPING\r\n"));
    }
    replicas_count(server);
}

/* Commands */

/* Those who have waited for it are answered in simredis_run(). */
static void on_ack(struct simredis_client *replica, uint64_t offset)
{
    struct simredis *server = replica->server;
    const bool is_new = !replica->is_online;

    replica->acked_us = server->now_us;
    replica->is_online = true;
    if (offset > replica->acked_offset)
        replica->acked_offset = offset;
    if (is_new)
        replicas_count(server);
    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);

        if (client->wait_until > 0 && replicas_acked(server, client->wait_offset) >= client->wait_replicas)
            client->wait_until = 1;
    }
}

static void set_ip(struct simredis_client *client, struct text ip)
{
    free(client->replica_ip);
    client->replica_ip = mem_copy_text(ip.ptr, ip.len);
}

/* ACK is not answered. */
void cmd_replconf(struct call *call)
{
    struct simredis_client *client = call->client;
    int64_t number;

    if (call->argc % 2 == 0) {
        say_syntax(call);
        return;
    }
    for (size_t i = 1; i < call->argc; i += 2) {
        const bool is_number = number_parse_i64(call->argv[i + 1], &number) && number >= 0;

        if (arg_is(call, i, "ACK")) {
            if (client->is_replica && is_number)
                on_ack(client, (uint64_t)number);
            return;
        }
        if (arg_is(call, i, "listening-port") && is_number) {
            client->replica_port = (uint16_t)number;
        } else if (arg_is(call, i, "ip-address")) {
            set_ip(client, call->argv[i + 1]);
        } else if (!arg_is(call, i, "capa")) {
            say_errorf(call, "ERR Unrecognized REPLCONF option: %s", call->argv[i].ptr);
            return;
        }
    }
    say_ok(call);
}

/* From the first replica on there is a stream; what was before is a history of its own. */
static void begin_stream(struct simredis *server)
{
    if (!server->has_stream) {
        server->has_stream = true;
        sim_new_run_id(server, server->replid);
        memset(server->replid2, '0', SIM_RUN_ID_CHARS);
        server->second_offset = -1;
    }
    server->stream.db = UINT_MAX;
}

/* Always all data: see README.md. */
void cmd_psync(struct call *call)
{
    struct simredis *server = call->server;
    struct simredis_client *client = call->client;

    if (server->master_host && server->upstream.state != UPSTREAM_CONNECTED) {
        say_error(call, "NOMASTERLINK Can't SYNC while not connected with my master");
        return;
    }
    begin_stream(server);
    struct buf data CLEANUP(buf_finish) = snapshot_take(server, server->master_host ? server->upstream.db : 0);
    buf_printf(call->out, "+FULLRESYNC %s %" PRIu64 "\r\n$%zu\r\n", server->replid, server->offset, data.len);
    buf_append_text(call->out, buf_text(&data));
    client->is_replica = true;
    client->acked_us = server->now_us;
    client->acked_offset = 0;
}

/* What it says of them */

static const char *ip_of(const struct simredis_client *replica)
{
    return replica->replica_ip ? replica->replica_ip : "127.0.0.1";
}

void replicas_say_role(struct call *call)
{
    char storage[NUMBER_BYTES];
    size_t count = 0;

    FOR_REPLICAS(call->server, replica)
    count += replica->is_online;
    say_array(call, 3);
    say_text(call, TEXT("master"));
    say_integer(call, (int64_t)call->server->offset);
    say_array(call, count);
    FOR_REPLICAS(call->server, replica)
    {
        if (!replica->is_online)
            continue;
        say_array(call, 3);
        say_text(call, text_of(ip_of(replica)));
        say_text(call, number_print_i64(storage, replica->replica_port));
        say_text(call, number_print_i64(storage, (int64_t)replica->acked_offset));
    }
}

void replicas_print(const struct simredis *server, struct buf *out)
{
    size_t count = 0, number = 0;

    FOR_REPLICAS(server, replica)
    count++;
    buf_printf(out, "connected_slaves:%zu\r\n", count);
    if (setting_number(server, "min-replicas-to-write") > 0 && setting_number(server, "min-replicas-max-lag") > 0)
        buf_printf(out, "min_slaves_good_slaves:%" PRId64 "\r\n", server->good_replicas);
    FOR_REPLICAS(server, replica)
    buf_printf(out, "slave%zu:ip=%s,port=%u,state=%s,offset=%" PRIu64 ",lag=%" PRIu64 "\r\n", number++, ip_of(replica),
               replica->replica_port, replica->is_online ? "online" : "send_bulk", replica->acked_offset,
               replica->is_online ? lag_s(server, replica) : 0);
}

/* The server and its clients. */
#include "commands.h"
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { CRON_US = 1000 * 1000 };

int64_t sim_now_ms(const struct simredis *server)
{
    return (int64_t)(server->now_us / 1000);
}

uint64_t sim_random(struct simredis *server)
{
    return server->host.random(server->host.context);
}

void sim_read_clock(struct simredis *server)
{
    server->now_us = server->host.unix_us(server->host.context);
}

void sim_new_run_id(struct simredis *server, char ret_id[SIM_RUN_ID_CHARS + 1])
{
    for (size_t i = 0; i < SIM_RUN_ID_CHARS; i++)
        ret_id[i] = "0123456789abcdef"[sim_random(server) % 16];
    ret_id[SIM_RUN_ID_CHARS] = '\0';
}

struct simredis *simredis_new(const struct simredis_host *host)
{
    struct simredis *server = mem_alloc(sizeof *server);

    server->host = *host;
    server->next_client_id = 1;
    list_init(&server->clients);
    buf_init(&server->disk.bytes, SIZE_MAX / 2);
    buf_init(&server->stream.bytes, SIZE_MAX / 2);
    buf_init(&server->upstream.in, SIZE_MAX / 2);
    settings_init(server);
    acl_init(server);
    sim_read_clock(server);
    server->started_us = server->now_us;
    sim_new_run_id(server, server->replid);
    sim_new_run_id(server, server->run_id);
    memset(server->replid2, '0', SIM_RUN_ID_CHARS);
    server->second_offset = -1;
    return server;
}

static void client_free(struct simredis_client *client)
{
    list_remove(&client->node);
    for (size_t i = 0; i < sizeof client->channels / sizeof *client->channels; i++)
        dict_finish(&client->channels[i]);
    buf_finish(&client->in);
    buf_finish(&client->out);
    free(client->name);
    free(client->replica_ip);
    free(client);
}

void simredis_free(struct simredis *server)
{
    struct list *node;

    while ((node = list_first(&server->clients)))
        client_free(LIST_ENTRY(node, struct simredis_client, node));
    for (size_t i = 0; i < SIM_DATABASES; i++)
        database_clear(&server->databases[i]);
    scripts_finish(server);
    acl_finish(server);
    dict_finish(&server->settings);
    dict_finish(&server->calls);
    buf_finish(&server->disk.bytes);
    buf_finish(&server->stream.bytes);
    replica_finish(server);
    free(server->cluster);
    free(server);
}

struct simredis_client *simredis_connect(struct simredis *server, void *host_client)
{
    struct simredis_client *client = mem_alloc(sizeof *client);

    client->server = server;
    client->host_client = host_client;
    client->id = server->next_client_id++;
    client->user = acl_usual(server);
    buf_init(&client->in, SIZE_MAX / 2);
    buf_init(&client->out, SIZE_MAX / 2);
    list_append(&server->clients, &client->node);
    return client;
}

void simredis_disconnect(struct simredis_client *client)
{
    struct simredis *server = client->server;
    bool was_replica = client->is_replica;

    client_free(client);
    if (was_replica)
        replicas_count(server);
}

void sim_close_client(struct simredis_client *client)
{
    client->is_closing = true;
}

/* What all clients are due, in the order of their ids. */
void sim_flush(struct simredis *server)
{
    struct list *next;

    log_send(server);
    for (struct list *node = server->clients.next; node != &server->clients; node = next) {
        struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);

        next = node->next;
        if (client->out.len > 0)
            server->host.send(client->host_client, client->out.ptr, client->out.len);
        buf_clear(&client->out);
        if (client->is_closing && !client->is_running) {
            server->host.close(client->host_client);
            client_free(client);
        }
    }
}

void sim_run_command(struct call *call)
{
    struct simredis *server = call->server;
    size_t out_before = call->out->len;
    uint64_t logged_before = server->logged;

    if (!cmd_may_run(call))
        return;
    dict_add(&server->calls, text_of(call->command->name), NULL)->score++;
    call->command->run(call);
    if (!(call->command->flags & CMD_WRITE) || call->out->ptr[out_before] == '-')
        return;
    if (server->in_script)
        server->has_script_written = true;
    if (server->logged == logged_before && !(call->command->flags & CMD_LOGS_ITSELF))
        log_call(call);
}

/* Whether CLIENT PAUSE holds it. */
static bool is_held(const struct call *call)
{
    const struct simredis *server = call->server;

    if (server->pause_until_us <= server->now_us || !call->command || server->is_loading)
        return false;
    if (!server->pauses_writes_only)
        return true;
    return script_call_flags(call) & (CMD_WRITE | CMD_MAY_REPLICATE);
}

/* False: it is held, and its bytes stay. */
static bool run_request(struct simredis_client *client, size_t argc, struct text *argv)
{
    struct simredis *server = client->server;
    struct call call = {.server = server,
                        .client = client,
                        .command = cmd_find(argv[0], argc > 1 ? argv[1] : (struct text){0}),
                        .argv = argv,
                        .argc = argc,
                        .out = &client->out,
                        .db = &server->databases[client->db]};

    sim_read_clock(server);
    client->is_held = is_held(&call);
    if (client->is_held)
        return false;
    client->is_running = true;
    sim_run_command(&call);
    space_expire_some(&call);
    log_send(server);
    client->write_offset = server->offset;
    if (server->asks_acks)
        replicas_feed(server, TEXT("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"));
    server->asks_acks = false;
    client->is_running = false;
    client->is_asking = call.command && call.command->run == cmd_asking;
    return true;
}

/* Runs what has arrived whole. Returns false when the client is gone. */
static bool run_requests(struct simredis_client *client)
{
    struct simredis *server = client->server;

    client->is_held = false;
    while (client->in.len > 0 && client->wait_until == 0) {
        struct request request;
        enum request_state state = request_read(buf_text(&client->in), &request);
        bool is_run = true;

        if (state == REQUEST_PART)
            break;
        if (state == REQUEST_BAD) {
            buf_printf(&client->out, "-ERR Protocol error: %s\r\n", request.trouble);
            client->is_closing = true;
        } else if (request.argc > 0)
            is_run = run_request(client, request.argc, request.argv);
        bool is_gone = client->is_closing;
        if (is_run && !is_gone)
            buf_consume(&client->in, request.bytes);
        request_finish(&request);
        sim_flush(server);
        if (is_gone)
            return false;
        if (!is_run)
            break;
    }
    return true;
}

void simredis_receive(struct simredis_client *client, const char *bytes, size_t length)
{
    buf_append(&client->in, bytes, length);
    if (!client->is_held)
        run_requests(client);
}

uint64_t simredis_next_us(const struct simredis *server)
{
    uint64_t next = cluster_next_us(server);

    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        const struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);

        if (client->is_held && server->pause_until_us < next)
            next = server->pause_until_us;
        if (client->wait_until > 0 && client->wait_until < next)
            next = client->wait_until;
    }
    if ((server->upstream.state != UPSTREAM_NONE || replicas_are_there(server)) && server->cron_us < next)
        next = server->cron_us;
    return next;
}

/* Of one client at most, because others may go when it runs. */
static bool run_one(struct simredis *server)
{
    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);
        bool has_waited = client->wait_until > 0 && client->wait_until <= server->now_us;

        if (has_waited) {
            client->wait_until = 0;
            out_integer(&client->out, replicas_acked(server, client->wait_offset));
            sim_flush(server);
        }
        if (has_waited || (client->is_held && server->pause_until_us <= server->now_us)) {
            run_requests(client);
            return true;
        }
    }
    return false;
}

void simredis_run(struct simredis *server)
{
    sim_read_clock(server);
    cluster_run(server);
    while (run_one(server))
        ;
    if (server->cron_us > server->now_us)
        return;
    server->cron_us = server->now_us + CRON_US;
    replica_cron(server);
    replicas_cron(server);
    sim_flush(server);
}

/* What clients ask a Sentinel, and what other Sentinels do. */
#include "base/check.h"
#include "base/mem.h"
#include "request.h"
#include "sentinel_internal.h"
#include "trace.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who has connected to it. */
struct visitor {
    struct list of_sentinel;
    struct sim_sentinel *sentinel;
    struct sim_socket *socket;
    struct buf in;
    bool hears_switches;
};

static void tell_switch(struct sim_sentinel *sentinel, unsigned from)
{
    struct buf payload = BUF_FIXED(128), message = BUF_FIXED(256);
    char old[INET_ADDRSTRLEN], new[INET_ADDRSTRLEN];

    inet_ntop(AF_INET, &sentinel->redises[from].ip, old, sizeof old);
    inet_ntop(AF_INET, &sentinel->redises[sentinel->master].ip, new, sizeof new);
    buf_printf(&payload, SIM_MASTER_NAME " %s %u %s %u", old, SENTINEL_REDIS_PORT, new, SENTINEL_REDIS_PORT);
    buf_printf(&message, "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$%zu\r\n%.*s\r\n", payload.len,
               TEXT_ARG(buf_text(&payload)));
    for (struct list *node = sentinel->visitors.next; node != &sentinel->visitors; node = node->next) {
        const struct visitor *visitor = LIST_ENTRY(node, struct visitor, of_sentinel);

        if (visitor->hears_switches)
            (void)sim_actor_send(visitor->socket, message.ptr, message.len);
    }
}

void sentinel_take_master(struct sim_sentinel *sentinel, unsigned master, uint64_t epoch)
{
    const unsigned from = sentinel->master;

    sentinel->config_epoch = epoch;
    if (epoch > sentinel->epoch)
        sentinel->epoch = epoch;
    sentinel->master = master;
    sentinel->redises[master].odd_ns = 0;
    if (from == master)
        return;
    sim_trace(sentinel->host->name, "redis%u is the master, by configuration %" PRIu64, master + 1, epoch);
    sentinel->switched(sentinel->arg, master, epoch);
    tell_switch(sentinel, from);
}

static void on_hello(struct sim_sentinel *sentinel, uint64_t epoch, uint64_t config_epoch, uint64_t master)
{
    if (epoch > sentinel->epoch)
        sentinel->epoch = epoch;
    if (config_epoch <= sentinel->config_epoch || master >= SIM_WATCHED)
        return;
    sentinel_take_master(sentinel, (unsigned)master, config_epoch);
    sentinel->failover = NONE;
}

/* The first who asks in an epoch gets its vote. */
static void vote(struct sim_sentinel *sentinel, uint64_t epoch, uint64_t candidate)
{
    if (candidate >= SIM_SENTINELS || epoch <= sentinel->voted_epoch || epoch < sentinel->epoch)
        return;
    sentinel->epoch = sentinel->voted_epoch = epoch;
    sentinel->voted_for = (unsigned)candidate;
    sentinel->again_ns = sim_now_ns() + (SENTINEL_AGAIN_MS + sim_draw_below(SENTINEL_DESYNC_MOST_MS)) * NS_PER_MS;
}

static bool takes_word(const struct request *request, size_t index, const char *word)
{
    return index < request->argc && text_equal_nocase(request->argv[index], text_of(word));
}

/* SIM epoch config-epoch master candidate: in place of hellos and SENTINEL IS-MASTER-DOWN-BY-ADDR. */
static void answer_other(struct sim_sentinel *sentinel, const struct request *request, struct buf *out)
{
    uint64_t numbers[4] = {0};

    for (size_t i = 0; i < 4; i++)
        CHECK(request->argc == 5 && text_to_u64(request->argv[i + 1], UINT64_MAX, &numbers[i]));
    on_hello(sentinel, numbers[0], numbers[1], numbers[2]);
    vote(sentinel, numbers[0], numbers[3]);
    buf_printf(out, "+%d %" PRIu64 " %u\r\n", sentinel_misses_master(sentinel), sentinel->voted_epoch,
               sentinel->voted_for);
}

static void put(struct buf *out, const char *text)
{
    buf_printf(out, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void put_number(struct buf *out, const char *name, uint64_t number)
{
    struct buf text = BUF_FIXED(24);

    buf_append_u64(&text, number);
    put(out, name);
    buf_printf(out, "$%zu\r\n%.*s\r\n", text.len, TEXT_ARG(buf_text(&text)));
}

static void answer_master(const struct sim_sentinel *sentinel, struct buf *out)
{
    char ip[INET_ADDRSTRLEN];

    inet_ntop(AF_INET, &sentinel->redises[sentinel->master].ip, ip, sizeof ip);
    buf_append_str(out, "*14\r\n");
    put(out, "name");
    put(out, SIM_MASTER_NAME);
    put(out, "ip");
    put(out, ip);
    put_number(out, "port", SENTINEL_REDIS_PORT);
    put_number(out, "config-epoch", sentinel->config_epoch);
    put_number(out, "num-slaves", SIM_WATCHED - 1);
    put_number(out, "num-other-sentinels", SIM_SENTINELS - 1);
    put_number(out, "quorum", SENTINEL_QUORUM);
}

static void answer_sentinel(const struct sim_sentinel *sentinel, const struct request *request, struct buf *out)
{
    char ip[INET_ADDRSTRLEN], port[8];
    const bool is_known = takes_word(request, 2, SIM_MASTER_NAME);

    if (takes_word(request, 1, "MASTER") && is_known) {
        answer_master(sentinel, out);
    } else if (takes_word(request, 1, "MASTER")) {
        buf_append_str(out, "-ERR No such master with that name\r\n");
    } else if (takes_word(request, 1, "GET-MASTER-ADDR-BY-NAME") && is_known) {
        inet_ntop(AF_INET, &sentinel->redises[sentinel->master].ip, ip, sizeof ip);
        snprintf(port, sizeof port, "%u", SENTINEL_REDIS_PORT);
        buf_append_str(out, "*2\r\n");
        put(out, ip);
        put(out, port);
    } else if (takes_word(request, 1, "GET-MASTER-ADDR-BY-NAME")) {
        buf_append_str(out, "*-1\r\n");
    } else {
        buf_append_str(out, "-ERR Unknown sentinel subcommand\r\n");
    }
}

static void answer(struct visitor *visitor, const struct request *request, struct buf *out)
{
    if (takes_word(request, 0, "SIM")) {
        answer_other(visitor->sentinel, request, out);
    } else if (takes_word(request, 0, "SENTINEL")) {
        answer_sentinel(visitor->sentinel, request, out);
    } else if (takes_word(request, 0, "SUBSCRIBE") && takes_word(request, 1, "+switch-master")) {
        visitor->hears_switches = true;
        buf_append_str(out, "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
    } else if (takes_word(request, 0, "PING")) {
        buf_append_str(out, visitor->hears_switches ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
    } else if (takes_word(request, 0, "CLIENT") && takes_word(request, 1, "SETNAME")) {
        buf_append_str(out, "+OK\r\n");
    } else if (takes_word(request, 0, "AUTH")) {
        buf_append_str(out, "-ERR AUTH <password> called without any password configured for the default user. Are you "
                            "sure your configuration is correct?\r\n");
    } else {
        buf_append_str(out, "-ERR unknown command\r\n");
    }
}

static void visitor_free(struct visitor *visitor)
{
    list_remove(&visitor->of_sentinel);
    buf_finish(&visitor->in);
    free(visitor);
}

static void on_visitor(struct sim_socket *socket, void *arg)
{
    struct visitor *visitor = mem_alloc(sizeof *visitor);

    *visitor = (struct visitor){.sentinel = arg, .socket = socket, .in = BUF_UP_TO(SENTINEL_INPUT_BYTES)};
    list_append(&visitor->sentinel->visitors, &visitor->of_sentinel);
    sim_actor_is(socket, visitor);
}

static void on_requests(struct sim_socket *socket, void *arg, const char *bytes, size_t length)
{
    struct visitor *visitor = arg;
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(SENTINEL_INPUT_BYTES);
    struct request request;

    buf_append(&visitor->in, bytes, length);
    while (request_read(buf_text(&visitor->in), &request) == REQUEST_WHOLE) {
        if (request.argc > 0)
            answer(visitor, &request, &out);
        buf_consume(&visitor->in, request.bytes);
        request_finish(&request);
    }
    if (out.len > 0)
        (void)sim_actor_send(socket, out.ptr, out.len);
}

static void on_visitor_gone(struct sim_socket *socket, void *arg)
{
    (void)socket;
    visitor_free(arg);
}

static const struct sim_actor VISITED = {.connected = on_visitor, .received = on_requests, .closed = on_visitor_gone};

void sentinel_listen(struct sim_sentinel *sentinel)
{
    list_init(&sentinel->visitors);
    (void)sim_actor_listen(sentinel->host, SENTINEL_PORT, &VISITED, sentinel);
}

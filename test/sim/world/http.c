#include "http.h"
#include "actor.h"
#include "base/check.h"
#include "base/mem.h"
#include "schedule.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LATE_BYTES = 2, STATUS_AT = 9, HEAD_END = 4 };

struct conn {
    struct list of_idle;
    struct sim_socket *socket;
    struct sim_host *from;
    const struct sim_host *to;
    uint16_t port;
    bool is_connected;
    /* The request under way; bytes NULL: none. */
    char *bytes;
    size_t len, sent;
    uint64_t late_ns, asked_ns, begun_ns;
    void (*answered)(void *arg, const struct sim_answer *answer);
    void *arg;
    char *input;
    size_t input_len;
    struct sim_event late, end;
};

static struct list idle = {&idle, &idle};

static void conn_free(struct conn *conn)
{
    sim_event_cancel(&conn->late);
    sim_event_cancel(&conn->end);
    list_remove(&conn->of_idle);
    free(conn->bytes);
    free(conn->input);
    free(conn);
}

static struct sim_answer answer_of(const struct conn *conn, int status, const char *head, const char *body)
{
    return (struct sim_answer){.status = status,
                               .head = head,
                               .body = body,
                               .asked_ns = conn->asked_ns,
                               .begun_ns = conn->begun_ns,
                               .answered_ns = sim_now_ns()};
}

/* The connection is gone already. */
static void conn_end(struct conn *conn)
{
    const struct sim_answer nothing = answer_of(conn, 0, "", "");

    if (conn->bytes)
        conn->answered(conn->arg, &nothing);
    conn_free(conn);
}

static void send_part(struct conn *conn, size_t end)
{
    if (end > conn->sent && sim_actor_send(conn->socket, conn->bytes + conn->sent, end - conn->sent))
        conn->sent = end;
    conn->begun_ns = sim_now_ns();
}

static void on_late(struct sim_event *late)
{
    struct conn *conn = LIST_ENTRY(late, struct conn, late);

    send_part(conn, conn->len);
}

static void send_request(struct conn *conn)
{
    if (conn->late_ns == 0 || conn->len <= LATE_BYTES) {
        send_part(conn, conn->len);
        return;
    }
    send_part(conn, conn->len - LATE_BYTES);
    sim_event_in(&conn->late, conn->late_ns);
}

static void on_end(struct sim_event *end)
{
    struct conn *conn = LIST_ENTRY(end, struct conn, end);

    sim_actor_break(conn->socket);
    conn_end(conn);
}

/* Of the field, in any case of its letters. */
static size_t body_bytes(const char *head)
{
    static const char NAME[] = "\ncontent-length:";

    while ((head = strchr(head, '\n')) && strncasecmp(head, NAME, strlen(NAME)) != 0 && head[1] != '\r')
        head++;
    return head && head[1] != '\r' ? strtoul(head + strlen(NAME), NULL, 10) : 0;
}

/* Whole answers alone, with a length. */
static bool is_whole(const struct conn *conn, char **ret_body)
{
    char *end = strstr(conn->input, "\r\n\r\n");

    if (!end)
        return false;
    *ret_body = end + HEAD_END;
    return conn->input_len >= (size_t)(*ret_body - conn->input) + body_bytes(conn->input);
}

/* Whoever has an answer before all was sent cannot go on with this connection. */
static void conn_rest(struct conn *conn)
{
    const bool is_whole_sent = conn->sent == conn->len;

    sim_event_cancel(&conn->end);
    sim_event_cancel(&conn->late);
    free(conn->bytes);
    conn->bytes = NULL;
    if (is_whole_sent) {
        list_append(&idle, &conn->of_idle);
    } else {
        sim_actor_close(conn->socket);
        conn_free(conn);
    }
}

static void on_received(struct sim_socket *socket, void *arg, const char *bytes, size_t length)
{
    struct conn *conn = arg;
    void (*answered)(void *answered_arg, const struct sim_answer *answer) = conn->answered;
    void *answered_arg = conn->arg;
    struct sim_answer answer;
    char *body, *input;

    (void)socket;
    if (!conn->bytes)
        return;
    conn->input = mem_resize(conn->input, conn->input_len + length + 1);
    memcpy(conn->input + conn->input_len, bytes, length);
    conn->input_len += length;
    conn->input[conn->input_len] = 0;
    if (conn->input_len <= STATUS_AT || !is_whole(conn, &body))
        return;
    input = conn->input;
    conn->input = NULL;
    conn->input_len = 0;
    body[-1] = 0;
    answer = answer_of(conn, (int)strtol(input + STATUS_AT, NULL, 10), input, body);
    conn_rest(conn);
    answered(answered_arg, &answer); /* may ask again, over this connection */
    free(input);
}

static void on_closed(struct sim_socket *socket, void *arg)
{
    (void)socket;
    conn_end(arg);
}

static void on_connected(struct sim_socket *socket, void *arg)
{
    struct conn *conn = arg;

    (void)socket;
    conn->is_connected = true;
    if (conn->bytes)
        send_request(conn);
}

static const struct sim_actor ACTOR = {.connected = on_connected, .received = on_received, .closed = on_closed};

static struct conn *conn_for(const struct sim_request *request)
{
    struct conn *conn;

    for (struct list *node = idle.next; node != &idle; node = node->next) {
        conn = LIST_ENTRY(node, struct conn, of_idle);
        if (conn->from == request->from && conn->to == request->to && conn->port == request->port)
            return conn;
    }
    conn = mem_alloc(sizeof *conn);
    *conn = (struct conn){
        .from = request->from, .to = request->to, .port = request->port, .late.run = on_late, .end.run = on_end};
    list_init(&conn->of_idle);
    conn->socket = sim_actor_connect(request->from, request->to->ip, request->port, &ACTOR, conn);
    return conn;
}

void sim_http_forget_idle(void)
{
    struct list *node;

    while ((node = list_first(&idle))) {
        struct conn *conn = LIST_ENTRY(node, struct conn, of_idle);

        sim_actor_close(conn->socket);
        conn_free(conn);
    }
}

void sim_http_ask(const struct sim_request *request)
{
    struct conn *conn = conn_for(request);

    list_remove(&conn->of_idle);
    conn->bytes = mem_copy_text(request->bytes, request->len);
    conn->len = request->len;
    conn->sent = 0;
    conn->late_ns = request->late_ns;
    conn->asked_ns = conn->begun_ns = sim_now_ns();
    conn->answered = request->answered;
    conn->arg = request->arg;
    sim_event_in(&conn->end, request->within_ns);
    if (conn->is_connected)
        send_request(conn);
}

bool sim_http_copy_after(const char *text, const char *before, char *ret_value, size_t size)
{
    const char *at = strstr(text, before), *end = at ? strchr(at + strlen(before), '"') : NULL;

    if (!end || (size_t)(end - at) - strlen(before) >= size)
        return false;
    at += strlen(before);
    memcpy(ret_value, at, (size_t)(end - at));
    ret_value[end - at] = 0;
    return true;
}

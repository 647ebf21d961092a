#include "conn_internal.h"

static uint64_t body_look_ms(const struct http_settings *settings)
{
    int64_t limit_ms = settings->body_timeout_ms < settings->body_total_timeout_ms ? settings->body_timeout_ms
                                                                                   : settings->body_total_timeout_ms;
    int64_t look_ms = limit_ms / BODY_LOOKS;

    if (look_ms > BODY_LOOK_MAX_MS)
        return BODY_LOOK_MAX_MS;
    return look_ms > 0 ? (uint64_t)look_ms : 1;
}

void deadline_init(struct http_server *server)
{
    const struct http_settings *settings = &server->settings;

    for (int class = 0; class < DEADLINE_CLASSES; class ++)
        list_init(&server->deadlines[class]);
    server->timeouts_ms[DEADLINE_HEAD] = (uint64_t)settings->head_timeout_ms;
    server->timeouts_ms[DEADLINE_BODY] = body_look_ms(settings);
    server->timeouts_ms[DEADLINE_DISCARD] = (uint64_t)settings->body_timeout_ms;
    server->timeouts_ms[DEADLINE_IDLE] = (uint64_t)settings->idle_timeout_ms;
    server->timeouts_ms[DEADLINE_WRITE] = (uint64_t)settings->write_timeout_ms;
    server->timeouts_ms[DEADLINE_DELIVERY] = DELIVERY_LIMIT_MS;
    server->timeouts_ms[DEADLINE_LINGER] = LINGER_MS;
    server->deadline_due_ms = UINT64_MAX;
}

static struct conn *first_of(struct http_server *server, int class)
{
    struct list *node = list_first(&server->deadlines[class]);

    return node ? LIST_ENTRY(node, struct conn, in_deadline) : NULL;
}

static void on_timer(uv_timer_t *timer);

static void arm(struct http_server *server, uint64_t due_ms)
{
    uint64_t now_ms = uv_now(server->loop);

    server->deadline_due_ms = due_ms;
    uv_timer_start(&server->deadline_timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now_ms = uv_now(server->loop), next_ms = UINT64_MAX;
    struct conn *conn;

    for (int class = 0; class < DEADLINE_CLASSES; class ++) {
        while ((conn = first_of(server, class)) && conn->deadline_ms <= now_ms) {
            list_remove(&conn->in_deadline);
            conn_expire(conn);
        }
    }
    server->deadline_due_ms = UINT64_MAX;
    for (int class = 0; class < DEADLINE_CLASSES; class ++) {
        conn = first_of(server, class);
        if (conn && conn->deadline_ms < next_ms)
            next_ms = conn->deadline_ms;
    }
    if (next_ms != UINT64_MAX)
        arm(server, next_ms);
}

void deadline_set(struct http_server *server, struct conn *conn, enum deadline_class class)
{
    list_remove(&conn->in_deadline);
    if (class == DEADLINE_NONE)
        return;
    conn->deadline_ms = uv_now(server->loop) + server->timeouts_ms[class];
    list_append(&server->deadlines[class], &conn->in_deadline);
    if (conn->deadline_ms < server->deadline_due_ms)
        arm(server, conn->deadline_ms);
}

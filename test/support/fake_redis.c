#include "fake_redis.h"
#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "free_port.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RULES_MAX = 32, INPUT_MAX_BYTES = 8 * 1024 * 1024, READ_BYTES = 16 * 1024, NAME_BYTES = 64 };

struct fake_redis {
    uv_loop_t *loop;
    char *path;
    uint16_t port;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } listener;
    bool is_listening, is_closing, is_reading_stopped;
    unsigned listeners_open;
    struct list connections;
    struct tls_context *tls; /* NULL: plain */
    struct fake_rule rules[RULES_MAX];
    unsigned used[RULES_MAX];
    size_t rule_count;
    char **commands;
    size_t command_count;
    unsigned accepted;
};

struct fake_connection {
    struct list node;
    struct fake_redis *fake;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } peer;
    uv_timer_t timer; /* delays an answer */
    const struct fake_rule *waiting;
    struct tls_session *tls;
    struct buf input, sealed;
    char name[NAME_BYTES];
    bool is_closing;
    unsigned handles_open;
    char read[READ_BYTES];
};

static void serve(struct fake_connection *c);

static void free_when_empty(struct fake_redis *fake)
{
    if (!fake->is_closing || fake->listeners_open > 0 || !list_empty(&fake->connections))
        return;
    for (size_t i = 0; i < fake->command_count; i++)
        free(fake->commands[i]);
    free(fake->commands);
    free(fake->path);
    tls_context_release(fake->tls);
    free(fake);
}

/* Connections */

static void connection_handle_closed(uv_handle_t *handle)
{
    struct fake_connection *c = handle->data;
    struct fake_redis *fake = c->fake;

    if (--c->handles_open > 0)
        return;
    list_remove(&c->node);
    buf_finish(&c->input);
    buf_finish(&c->sealed);
    tls_session_free(c->tls);
    free(c);
    free_when_empty(fake);
}

static void connection_close(struct fake_connection *c, bool reset)
{
    if (c->is_closing)
        return;
    c->is_closing = true;
    uv_close((uv_handle_t *)&c->timer, connection_handle_closed);
    if (!reset || c->fake->path || uv_tcp_close_reset(&c->peer.tcp, connection_handle_closed) != 0)
        uv_close(&c->peer.handle, connection_handle_closed);
}

static void written(uv_write_t *write, int status)
{
    (void)status;
    free(write->data);
    free(write);
}

static void send_raw(struct fake_connection *c, const char *bytes, size_t count)
{
    uv_write_t *write = mem_alloc(sizeof *write);
    uv_buf_t buf = uv_buf_init(mem_copy_text(bytes, count), (unsigned)count);

    write->data = buf.base;
    if (uv_write(write, &c->peer.stream, &buf, 1, written) != 0)
        written(write, 0);
}

static void send_sealed(struct fake_connection *c)
{
    CHECK(!c->sealed.failed);
    if (c->sealed.len > 0)
        send_raw(c, c->sealed.ptr, c->sealed.len);
    buf_clear(&c->sealed);
}

static void send_bytes(struct fake_connection *c, const char *bytes, size_t count)
{
    if (!c->tls || tls_session_state(c->tls) != TLS_OPEN) {
        send_raw(c, bytes, count);
        return;
    }
    CHECK(tls_send(c->tls, (struct text){bytes, count}, &c->sealed));
    send_sealed(c);
}

static void act(struct fake_connection *c, const struct fake_rule *rule)
{
    size_t count = rule->answer ? strlen(rule->answer) : 0;
    size_t step = rule->in_pieces ? 1 : count;

    char *answer = mem_copy_text(rule->answer ? rule->answer : "", count);

    for (size_t i = 0; rule->action == FAKE_NUL && i < count; i++)
        answer[i] = answer[i] == '~' ? '\0' : answer[i];
    for (size_t at = 0; rule->action != FAKE_SILENT && at < count; at += step)
        send_bytes(c, answer + at, step);
    free(answer);
    if (rule->action == FAKE_CLOSE || rule->action == FAKE_RESET)
        connection_close(c, rule->action == FAKE_RESET);
}

static void act_late(uv_timer_t *timer)
{
    struct fake_connection *c = timer->data;
    const struct fake_rule *rule = c->waiting;

    c->waiting = NULL;
    act(c, rule);
    serve(c);
}

/* Commands */

static bool take_line(struct text *rest, char type, uint64_t *ret_number)
{
    struct text line;

    if (!rest->len || !memchr(rest->ptr, '\n', rest->len))
        return false;
    CHECK(text_next(rest, '\n', &line) && line.len >= 3 && line.ptr[0] == type);
    CHECK(text_to_u64((struct text){line.ptr + 1, line.len - 2}, INPUT_MAX_BYTES, ret_number));
    return true;
}

/* Takes one whole command off the input, as text; NULL if it has not arrived yet. */
static char *take_command(struct fake_connection *c)
{
    struct text rest = buf_text(&c->input);
    struct buf joined;
    uint64_t arguments, length;
    char *command = NULL;

    buf_init(&joined, INPUT_MAX_BYTES);
    if (!take_line(&rest, '*', &arguments))
        goto done;
    for (uint64_t i = 0; i < arguments; i++) {
        if (!take_line(&rest, '$', &length) || rest.len < length + 2)
            goto done;
        buf_append_str(&joined, i ? " " : "");
        buf_append(&joined, rest.ptr, length);
        rest = text_skip(rest, length + 2);
    }
    command = mem_copy_text(joined.ptr, joined.len);
    buf_consume(&c->input, c->input.len - rest.len);
done:
    buf_finish(&joined);
    return command;
}

static bool begins(const char *command, const char *begin)
{
    return strncmp(command, begin, strlen(begin)) == 0;
}

static const struct fake_rule *rule_for(struct fake_redis *fake, const char *command)
{
    static const struct fake_rule STANDARD[] = {
        {.command = "PING", .answer = "+PONG\r\n"},
        {.command = "ROLE", .answer = FAKE_MASTER},
        {.command = "INFO", .answer = "$49\r\n" FAKE_RUN_ID "\r\n"},
        {.command = "HMGET t:store id", .answer = FAKE_STORE(FAKE_STORE_ID)},
        {.command = "HGETALL t:suspended", .answer = "*0\r\n"},
        {.command = "", .answer = "+OK\r\n"},
    };
    const struct fake_rule *standard = STANDARD;

    for (size_t i = fake->rule_count; i-- > 0;) {
        const struct fake_rule *rule = &fake->rules[i];

        if (!begins(command, rule->command) || (rule->times && fake->used[i] == rule->times))
            continue;
        fake->used[i]++;
        return rule;
    }
    while (!begins(command, standard->command))
        standard++;
    return standard;
}

static void remember(struct fake_redis *fake, char *command)
{
    fake->commands = mem_resize(fake->commands, (fake->command_count + 1) * sizeof *fake->commands);
    fake->commands[fake->command_count++] = command;
}

static void note_name(struct fake_connection *c, const char *command)
{
    static const char SETNAME[] = "CLIENT SETNAME ";

    if (begins(command, SETNAME))
        snprintf(c->name, sizeof c->name, "%s", command + strlen(SETNAME));
}

static void serve(struct fake_connection *c)
{
    char *command;

    while (!c->is_closing && !c->waiting && (command = take_command(c))) {
        const struct fake_rule *rule = rule_for(c->fake, command);

        remember(c->fake, command);
        note_name(c, command);
        if (rule->delay_ms) {
            c->waiting = rule;
            CHECK(uv_timer_start(&c->timer, act_late, rule->delay_ms, 0) == 0);
        } else {
            act(c, rule);
        }
    }
}

static void lend(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    struct fake_connection *c = handle->data;

    (void)suggested;
    *ret_buf = uv_buf_init(c->read, sizeof c->read);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct fake_connection *c = stream->data;

    if (count < 0) {
        connection_close(c, false);
        return;
    }
    if (c->tls) {
        enum tls_state state = tls_receive(c->tls, (struct text){buf->base, (size_t)count}, &c->input, &c->sealed);

        send_sealed(c);
        if (state == TLS_FAILED) {
            connection_close(c, false);
            return;
        }
    } else {
        buf_append(&c->input, buf->base, (size_t)count);
    }
    CHECK(!c->input.failed);
    serve(c);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct fake_redis *fake = listener->data;
    struct fake_connection *c = mem_alloc(sizeof *c);

    CHECK(status == 0);
    c->fake = fake;
    buf_init(&c->input, INPUT_MAX_BYTES);
    buf_init(&c->sealed, INPUT_MAX_BYTES);
    c->tls = fake->tls ? tls_session_accept(fake->tls) : NULL;
    CHECK(uv_timer_init(fake->loop, &c->timer) == 0);
    CHECK((fake->path ? uv_pipe_init(fake->loop, &c->peer.pipe, 0) : uv_tcp_init(fake->loop, &c->peer.tcp)) == 0);
    c->handles_open = 2;
    c->timer.data = c->peer.handle.data = c;
    list_append(&fake->connections, &c->node);
    fake->accepted++;
    CHECK(uv_accept(listener, &c->peer.stream) == 0);
    if (!fake->is_reading_stopped)
        CHECK(uv_read_start(&c->peer.stream, lend, on_read) == 0);
}

/* Life */

static void listener_closed(uv_handle_t *handle)
{
    struct fake_redis *fake = handle->data;

    fake->listeners_open--;
    if (fake->is_listening && !fake->is_closing)
        fake_redis_come_back(fake);
    free_when_empty(fake);
}

void fake_redis_come_back(struct fake_redis *fake)
{
    struct sockaddr_in address;

    fake->is_listening = true;
    if (fake->listeners_open > 0)
        return; /* the old one is still closing */
    if (fake->path) {
        unlink(fake->path);
        CHECK(uv_pipe_init(fake->loop, &fake->listener.pipe, 0) == 0);
        CHECK(uv_pipe_bind(&fake->listener.pipe, fake->path) == 0);
    } else {
        CHECK(uv_ip4_addr("127.0.0.1", fake->port, &address) == 0);
        CHECK(uv_tcp_init(fake->loop, &fake->listener.tcp) == 0);
        CHECK(uv_tcp_bind(&fake->listener.tcp, (const struct sockaddr *)&address, 0) == 0);
    }
    fake->listener.handle.data = fake;
    fake->listeners_open = 1;
    CHECK(uv_listen(&fake->listener.stream, 64, on_connection) == 0);
}

void fake_redis_go_away(struct fake_redis *fake)
{
    if (fake->is_listening)
        uv_close(&fake->listener.handle, listener_closed);
    fake->is_listening = false;
    for (struct list *node = fake->connections.next; node != &fake->connections; node = node->next)
        connection_close(LIST_ENTRY(node, struct fake_connection, node), false);
}

struct fake_redis *fake_redis_create(uv_loop_t *loop, const char *path)
{
    struct fake_redis *fake = mem_alloc(sizeof *fake);

    fake->loop = loop;
    fake->path = path ? mem_copy_text(path, strlen(path)) : NULL;
    fake->port = path ? 0 : free_port(); /* while it is away, no client may get its port */
    list_init(&fake->connections);
    fake_redis_come_back(fake);
    return fake;
}

void fake_redis_close(struct fake_redis *fake)
{
    fake->is_closing = true;
    fake_redis_go_away(fake);
    if (fake->path)
        unlink(fake->path);
    free_when_empty(fake);
}

void fake_redis_secure(struct fake_redis *fake, struct tls_context *tls)
{
    tls_context_release(fake->tls);
    fake->tls = tls ? tls_context_hold(tls) : NULL;
}

uint16_t fake_redis_port(const struct fake_redis *fake)
{
    return fake->port;
}

/* Instructions and questions */

void fake_redis_rule(struct fake_redis *fake, const struct fake_rule *rule)
{
    CHECK(fake->rule_count < RULES_MAX);
    fake->used[fake->rule_count] = 0;
    fake->rules[fake->rule_count++] = *rule;
}

void fake_redis_hurry(struct fake_redis *fake)
{
    for (struct list *node = fake->connections.next; node != &fake->connections; node = node->next) {
        struct fake_connection *c = LIST_ENTRY(node, struct fake_connection, node);

        if (c->waiting && !c->is_closing)
            CHECK(uv_timer_start(&c->timer, act_late, 0, 0) == 0);
    }
}

void fake_redis_blurt(struct fake_redis *fake, const char *bytes)
{
    for (struct list *node = fake->connections.next; node != &fake->connections; node = node->next)
        send_bytes(LIST_ENTRY(node, struct fake_connection, node), bytes, strlen(bytes));
}

static bool is_named(const struct fake_connection *c, const char *name)
{
    return !c->is_closing && strcmp(c->name, name) == 0;
}

void fake_redis_push(struct fake_redis *fake, const char *name, const char *bytes)
{
    for (struct list *node = fake->connections.next; node != &fake->connections; node = node->next) {
        struct fake_connection *c = LIST_ENTRY(node, struct fake_connection, node);

        if (is_named(c, name))
            send_bytes(c, bytes, strlen(bytes));
    }
}

void fake_redis_hang_up(struct fake_redis *fake, const char *name)
{
    for (struct list *node = fake->connections.next; node != &fake->connections; node = node->next) {
        struct fake_connection *c = LIST_ENTRY(node, struct fake_connection, node);

        if (is_named(c, name))
            connection_close(c, false);
    }
}

void fake_redis_hang_up_newest(struct fake_redis *fake, const char *name)
{
    for (struct list *node = fake->connections.prev; node != &fake->connections; node = node->prev) {
        struct fake_connection *c = LIST_ENTRY(node, struct fake_connection, node);

        if (!c->is_closing && is_named(c, name)) {
            connection_close(c, false);
            return;
        }
    }
}

void fake_redis_stop_reading(struct fake_redis *fake, bool stop)
{
    fake->is_reading_stopped = stop;
    for (struct list *node = fake->connections.next; node != &fake->connections; node = node->next) {
        struct fake_connection *c = LIST_ENTRY(node, struct fake_connection, node);

        if (stop)
            uv_read_stop(&c->peer.stream);
        else if (!c->is_closing)
            CHECK(uv_read_start(&c->peer.stream, lend, on_read) == 0);
    }
}

const char *fake_redis_command(const struct fake_redis *fake, const char *command, unsigned n)
{
    for (size_t i = 0; i < fake->command_count; i++)
        if (begins(fake->commands[i], command) && n-- == 0)
            return fake->commands[i];
    return NULL;
}

unsigned fake_redis_count(const struct fake_redis *fake, const char *command)
{
    unsigned count = 0;

    while (fake_redis_command(fake, command, count))
        count++;
    return count;
}

unsigned fake_redis_accepted(const struct fake_redis *fake)
{
    return fake->accepted;
}

#include "request_internal.h"

#include "base/check.h"
#include "base/mem.h"
#include "http/response.h"

#include <stdlib.h>
#include <string.h>

static struct http_request *request_take(struct http_server *server)
{
    struct list *free_one = list_first(&server->free_requests);
    struct http_request *request;

    if (!free_one)
        return mem_alloc(sizeof *request);
    request = LIST_ENTRY(free_one, struct http_request, in_server);
    list_remove(free_one);
    server->free_request_count--;
    memset(request, 0, offsetof(struct http_request, first_block));
    return request;
}

struct http_request *request_create(struct conn *conn)
{
    struct http_server *server = conn->server;
    struct http_request *request = request_take(server);

    list_init(&request->in_server);
    list_init(&request->in_deliveries);
    arena_init(&request->arena, request->first_block, sizeof request->first_block);
    buf_init(&request->body, (size_t)server->settings.body_max_bytes);
    request->server = server;
    request->conn = conn;
    request->pins = 1;
    request->method = HTTP_OTHER;
    request->last_line = &request->first_line;
    id_mint_to(ID_REQUEST, server_wall_ms(server), &request->id);
    memcpy(request->peer, conn->peer, sizeof request->peer);
    server->request_count++;
    return request;
}

static void request_free(struct http_request *request)
{
    struct http_server *server = request->server;

    buf_wipe(&request->body);
    arena_finish(&request->arena);
    server->request_count--;
    if (server->state != SERVER_CLOSING && server->free_request_count < FREE_REQUESTS_MAX) {
        /* The one that was used last is taken first: it is still in the processor's caches. */
        list_prepend(&server->free_requests, &request->in_server);
        server->free_request_count++;
    } else {
        free(request);
    }
    server_part_ended(server);
}

static void free_if_unused(struct http_request *request)
{
    if (request->holds == 0 && request->pins == 0)
        request_free(request);
}

void request_pin(struct http_request *request)
{
    request->pins++;
}

void request_unpin(struct http_request *request)
{
    CHECK(request->pins > 0);
    request->pins--;
    free_if_unused(request);
}

void http_request_hold(struct http_request *request)
{
    request->holds++;
}

void http_request_release(struct http_request *request)
{
    CHECK(request->holds > 0);
    request->holds--;
    CHECK(request->holds > 0 || request->is_replied || request->is_gone);
    free_if_unused(request);
}

enum problem_code request_read_head(struct http_request *request, struct text bytes, size_t lines)
{
    enum problem_code code;

    request->head_bytes = arena_copy(&request->arena, bytes);
    code = parser_read_head(&request->parser, &request->head, &request->arena, request->head_bytes, lines,
                            &request->server->settings);
    request->method = (enum http_method)request->head.known_method; /* of a refused head too: HEAD gets no body */
    return code;
}

/* It asks about the server, not about anything that a handler knows (RFC 9110 section 9.3.7). */
static void answer_options(struct http_request *request)
{
    http_response_header(request, TEXT("Allow"), TEXT(HTTP_METHODS_ALLOWED));
    http_reply(request, 204, (struct text){NULL, 0}, (struct text){NULL, 0});
}

void request_dispatch(struct http_request *request)
{
    if (text_equal(request->head.target, TEXT("*"))) {
        answer_options(request);
        return;
    }
    request_pin(request);
    request->server->handler(request, request->server->handler_arg);
    CHECK(request->is_replied || request->is_gone || request->holds > 0);
    request_unpin(request);
}

void request_lost(struct http_request *request)
{
    request->is_gone = true;
    if (request->body_done || request->delivery != DELIVERY_NONE)
        delivery_tell_lost(request);
}

void request_refuse(struct http_request *request, enum problem_code code)
{
    struct problem problem = problem_of(code);

    if (code == PROBLEM_METHOD_NOT_ALLOWED)
        problem.allow = HTTP_METHODS_ALLOWED;
    if (request->server->settings.mark_refusal)
        request->server->settings.mark_refusal(request, &problem, request->server->handler_arg);
    http_response_close(request);
    http_reply_problem(request, &problem);
}

void request_body_ended(struct http_request *request, enum http_body_result result)
{
    http_body_done *done = request->body_done;

    if (!done)
        return;
    request->body_done = NULL;
    done(request->body_arg, result, result == HTTP_BODY_OK ? buf_text(&request->body) : (struct text){NULL, 0});
    http_request_release(request);
}

void http_request_read_body(struct http_request *request, http_body_done *done, void *arg)
{
    CHECK(!request->body_done && !request->is_replied);
    http_request_hold(request);
    request->body_done = done;
    request->body_arg = arg;
    if (request->is_gone)
        delivery_tell_lost(request);
    else
        conn_want_body(request->conn);
}

enum http_method http_request_method(const struct http_request *request)
{
    return request->method;
}

struct text http_request_method_text(const struct http_request *request)
{
    return request->head.method;
}

struct text http_request_target(const struct http_request *request)
{
    return request->head.target;
}

struct text http_request_path(const struct http_request *request)
{
    return request->head.path;
}

struct text http_request_query(const struct http_request *request)
{
    return request->head.query;
}

struct text http_request_header(const struct http_request *request, struct text name, size_t *ret_count)
{
    struct text value = {NULL, 0};

    *ret_count = 0;
    for (size_t i = 0; i < request->head.field_count; i++) {
        const struct http_field *field = &request->head.fields[i];

        if (field->name.len != name.len || !text_equal_nocase(field->name, name))
            continue;
        if ((*ret_count)++ == 0)
            value = field->value;
    }
    return value;
}

struct text http_request_header_at(const struct http_request *request, struct text name, size_t n)
{
    for (size_t i = 0; i < request->head.field_count; i++) {
        const struct http_field *field = &request->head.fields[i];

        if (text_equal_nocase(field->name, name) && n-- == 0)
            return field->value;
    }
    return (struct text){NULL, 0};
}

struct text http_request_id(const struct http_request *request)
{
    return id_text(&request->id);
}

int64_t http_request_wall_ms(const struct http_request *request)
{
    return server_wall_ms(request->server);
}

struct text http_request_peer(const struct http_request *request)
{
    return text_of(request->peer);
}

bool http_request_has_body(const struct http_request *request)
{
    return request->head.is_chunked || request->head.content_length > 0;
}

bool http_request_limit_body(struct http_request *request, size_t max_bytes)
{
    if (max_bytes < request->parser.body_max_bytes)
        request->parser.body_max_bytes = max_bytes;
    return request->head.content_length <= request->parser.body_max_bytes;
}

void *http_request_alloc(struct http_request *request, size_t bytes)
{
    return arena_alloc(&request->arena, bytes);
}

struct text http_request_copy(struct http_request *request, struct text t)
{
    return arena_copy(&request->arena, t);
}

void http_request_defer(struct http_request *request, void (*fn)(void *arg), void *arg)
{
    arena_defer(&request->arena, fn, arg);
}

bool http_request_gone(const struct http_request *request)
{
    return request->is_gone;
}

bool http_request_replied(const struct http_request *request)
{
    return request->is_replied;
}

#include "request_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/turn_clock.h"

#include <stdlib.h>
#include <string.h>

enum { SPARES_MAX = 64 };

void requests_init(struct requests *requests, void (*settled)(struct delivery *delivery, bool is_delivered))
{
    deliveries_init(&requests->deliveries, requests->loop, settled);
    list_init(&requests->spares);
    requests->spares_max = SPARES_MAX;
}

void requests_keep_none(struct requests *requests)
{
    struct list *node;

    requests->spares_max = requests->spare_count = 0;
    while ((node = list_first(&requests->spares))) {
        list_remove(node);
        free(LIST_ENTRY(node, struct http_request, in_spares));
    }
}

static struct http_request *request_take(struct requests *requests)
{
    struct list *spare = list_first(&requests->spares);
    struct http_request *request;

    if (!spare)
        return mem_alloc(sizeof *request);
    request = LIST_ENTRY(spare, struct http_request, in_spares);
    list_remove(spare);
    ALL_INVARIANT(requests->spare_count > 0);
    requests->spare_count--;
    memset(request, 0, offsetof(struct http_request, first_block));
    return request;
}

/* Reads the clock once per turn of the loop: a request needs the time repeatedly, and never more exactly. */
static int64_t wall_ms(struct requests *requests)
{
    const uint64_t turn_ms = uv_now(requests->loop);

    if (turn_ms != requests->wall_read_ms || requests->wall_ms == 0) {
        requests->wall_ms = clock_wall_ms();
        requests->wall_read_ms = turn_ms;
    }
    return requests->wall_ms;
}

struct http_request *request_create(struct requests *requests, struct conn *conn, const char peer[INET6_ADDRSTRLEN])
{
    struct http_request *request = request_take(requests);

    list_init(&request->in_spares);
    delivery_init(&request->delivery);
    arena_init(&request->arena, request->first_block, sizeof request->first_block);
    buf_init(&request->body, (size_t)requests->settings->limits.body_max_bytes);
    request->all = requests;
    request->conn = conn;
    request->pins = 1;
    request->arrived_ns = turn_clock_ns();
    request->method = HTTP_OTHER;
    request->last_line = &request->first_line;
    request->id_bytes = requests->settings->make_id(wall_ms(requests), request->id);
    memcpy(request->peer, peer, sizeof request->peer);
    requests->count++;
    return request;
}

static void request_free(struct http_request *request)
{
    struct requests *requests = request->all;

    ALL_REQUIRE(!request->conn && !request->body_done && !request->stream.drained);
    ALL_REQUIRE(request->delivery.state == DELIVERY_NONE && list_empty(&request->delivery.in_polled));
    ALL_INVARIANT(requests->count > 0);
    buf_wipe(&request->body);
    arena_finish(&request->arena);
    if (requests->spare_count < requests->spares_max) {
        /* Last in, first out: the latest is still in the CPU's caches. */
        list_prepend(&requests->spares, &request->in_spares);
        requests->spare_count++;
    } else {
        free(request);
    }
    if (--requests->count == 0)
        requests->none_left(requests->arg);
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
    REQUIRE(request->pins > 0);
    request->pins--;
    free_if_unused(request);
}

void http_request_hold(struct http_request *request)
{
    request->holds++;
}

void http_request_release(struct http_request *request)
{
    REQUIRE(request->holds > 0);
    request->holds--;
    REQUIRE(request->holds > 0 || (request->is_replied && !request->stream.is_open) || request->is_gone);
    free_if_unused(request);
}

enum http_error request_read_head(struct http_request *request, struct text bytes, size_t lines)
{
    enum http_error error;

    request->head_bytes = arena_copy(&request->arena, bytes);
    error = parser_read_head(&request->parser, &request->head, &request->arena, request->head_bytes, lines,
                             request->all->settings);
    /* Also of a refused head: the response to HEAD has no body. */
    request->method = (enum http_method)request->head.known_method;
    return error;
}

void request_dispatch(struct http_request *request)
{
    request_pin(request);
    request->all->handler(request, request->all->handler_arg);
    ENSURE(request->is_replied || request->is_gone || request->holds > 0);
    request_unpin(request);
}

void request_lost(struct http_request *request)
{
    REQUIRE(!request->is_gone);
    request->is_gone = true;
    if (request->body_done || request->stream.drained || request->delivery.state != DELIVERY_NONE)
        delivery_lose(&request->all->deliveries, &request->delivery);
}

void request_end_lost(struct http_request *request, bool was_delivered)
{
    request_pin(request);
    request_body_ended(request, HTTP_BODY_FAILED);
    request_stream_drained(request);
    request_end_delivery(request, was_delivered);
    request_unpin(request);
}

void request_end_delivery(struct http_request *request, bool is_delivered)
{
    if (delivery_end(&request->delivery, is_delivered))
        request_unpin(request);
}

void request_stream_drained(struct http_request *request)
{
    void (*drained)(void *arg) = request->stream.drained;

    if (!drained)
        return;
    request->stream.drained = NULL;
    drained(request->stream.arg);
    request_unpin(request);
}

void request_body_ended(struct http_request *request, enum http_body_result result)
{
    http_body_done *done = request->body_done;

    if (!done)
        return;
    ALL_REQUIRE(result != HTTP_BODY_OK || request->parser.is_complete);
    request->body_done = NULL;
    done(request->body_arg, result, result == HTTP_BODY_OK ? buf_text(&request->body) : (struct text){NULL, 0});
    http_request_release(request);
}

void http_request_read_body(struct http_request *request, http_body_done *done, void *arg)
{
    REQUIRE(!request->body_done && !request->is_replied);
    http_request_hold(request);
    request->body_done = done;
    request->body_arg = arg;
    if (request->is_gone)
        delivery_lose(&request->all->deliveries, &request->delivery);
    else
        request->all->want_body(request->conn);
}

enum http_method http_request_method(const struct http_request *request)
{
    return request->method;
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
    return (struct text){request->id, request->id_bytes};
}

int64_t http_request_wall_ms(const struct http_request *request)
{
    return wall_ms(request->all);
}

uint64_t http_request_age_ns(const struct http_request *request)
{
    return turn_clock_ns() - request->arrived_ns;
}

struct text http_request_peer(const struct http_request *request)
{
    return text_of(request->peer);
}

bool http_request_has_client_certificate(const struct http_request *request)
{
    return request->has_verified_peer;
}

struct text http_request_client_name(const struct http_request *request)
{
    return request->conn ? request->client_name : (struct text){NULL, 0};
}

bool http_request_has_body(const struct http_request *request)
{
    return request->head.is_chunked || request->head.content_length > 0;
}

void http_request_raise_body(struct http_request *request, size_t max_bytes)
{
    REQUIRE((int64_t)max_bytes <= request->all->settings->body_raised_max_bytes);
    if (max_bytes <= request->parser.body_max_bytes)
        return;
    request->parser.body_max_bytes = max_bytes;
    request->body.max = max_bytes;
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

bool http_request_given_up(const struct http_request *request)
{
    return request->is_gone || request->has_whole_input;
}

/* The internal listener: is the node alive, is it ready, what has it counted, and may a gateway let a request pass.
 * Nothing here asks for a credential of its own; the listener is for the machine, its operators and its gateways alone.
 */
#include "api/service.h"
#include "base/json.h"
#include "base/metrics.h"
#include "check_internal.h"
#include "guard_internal.h"
#include "http/response.h"

static void reply_status(struct http_request *request, int http_status, const char *status, const char *reason)
{
    char storage[512];
    struct buf out;
    struct json_writer w = {.out = &out};

    buf_init_fixed(&out, storage, sizeof storage);
    json_object_begin(&w);
    json_put_member(&w, "status", text_of(status));
    if (reason)
        json_put_member(&w, "reason", text_of(reason));
    json_object_end(&w);
    http_reply_json(request, http_status, &out);
}

/* Never touches the store: a node without one is alive. */
static void show_liveness(struct http_request *request, const struct service *service)
{
    (void)service;
    reply_status(request, 200, "ok", NULL);
}

/* trouble: what does not work although the node had better be asked, for others cannot do it either. */
static void show_ready(struct http_request *request, const char *trouble)
{
    reply_status(request, 200, "ok", trouble[0] ? trouble : NULL);
}

static void show_readiness(struct http_request *request, const struct service *service)
{
    if (service->draining)
        reply_status(request, 503, "draining", "The node is shutting down.");
    else if (!store_is_ready(service->store))
        reply_status(request, 503, store_is_empty(service->store) ? "empty" : "unavailable",
                     store_trouble(service->store));
    else
        show_ready(request, store_trouble(service->store));
}

enum { METRICS_MAX_BYTES = 64 * 1024 };

static void show_metrics(struct http_request *request, const struct service *service)
{
    struct buf out CLEANUP(buf_finish);

    (void)service;
    buf_init(&out, METRICS_MAX_BYTES);
    metrics_print(&out, CHATELAINE_VERSION);
    http_reply(request, 200, TEXT("text/plain; version=0.0.4"), buf_text(&out));
}

void api_handle_internal(struct http_request *request, void *arg)
{
    static const struct {
        const char *path;
        void (*show)(struct http_request *request, const struct service *service);
    } ROWS[] = {{"/livez", show_liveness}, {"/readyz", show_readiness}, {"/metrics", show_metrics}};
    enum http_method method = http_request_method(request);
    struct problem problem = problem_of(PROBLEM_NOT_FOUND);

    /* No route here reads a body, and a gateway may announce its client's without sending it (nginx, unless told
     * otherwise): waiting for it would take the next request on the connection for its bytes. */
    if (http_request_has_body(request))
        http_response_close(request);
    if (guard_path_lies_under(http_request_path(request), TEXT("/check"))) {
        check_handle(request, arg);
        return;
    }
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (!text_equal(http_request_path(request), text_of(ROWS[i].path)))
            continue;
        if (method == HTTP_GET || method == HTTP_HEAD) {
            ROWS[i].show(request, arg);
            return;
        }
        problem = problem_of(PROBLEM_METHOD_NOT_ALLOWED);
        problem.allow = "GET, HEAD";
    }
    http_reply_problem(request, &problem);
}

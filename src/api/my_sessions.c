/* A person's own sessions: listed, and ended one by one or all but the present one. */
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "session_cookie_internal.h"
#include "views_internal.h"

#include <stdlib.h>
#include <string.h>

/* GET /v1/console/sessions */

static int by_last_use(const void *a, const void *b)
{
    const struct session_row *x = a, *y = b;

    return (x->seen_ms < y->seen_ms) - (x->seen_ms > y->seen_ms);
}

static void put_sessions(struct exchange *exchange, const struct session_row *sessions, size_t count)
{
    struct session_row *sorted = http_request_alloc(exchange->request, (count + 1) * sizeof *sorted);

    memcpy(sorted, sessions, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_last_use);
    view_sessions(exchange_answer(exchange, 200), sorted, count, exchange->session->sid);
}

static void sessions_were_listed(void *arg, enum store_result result, const struct session_row *sessions, size_t count)
{
    if (result == STORE_OK)
        put_sessions(arg, sessions, count);
    exchange_finish(arg, result);
}

void own_sessions_list(struct exchange *exchange)
{
    http_request_hold(exchange->request);
    session_store_list(exchange_store(exchange), exchange_actor(exchange), 1, sessions_were_listed, exchange);
}

/* DELETE /v1/console/sessions: all others */

static void others_ended(void *arg, enum store_result result, int64_t count)
{
    struct exchange *exchange = arg;
    struct json_writer *w = exchange_answer(exchange, 200);

    json_object_begin(w);
    json_put_number(w, "sessions_ended", count);
    json_object_end(w);
    if (result == STORE_OK)
        exchange_log_own(exchange, "other sessions ended", (struct text){0});
    exchange_finish(exchange, result);
}

void own_sessions_end(struct exchange *exchange)
{
    struct audit_source source = exchange_source(exchange);

    http_request_hold(exchange->request);
    session_store_stop(exchange_store(exchange), exchange_actor(exchange), TEXT(""), exchange->session_digest, &source,
                       others_ended, exchange);
}

/* DELETE /v1/console/sessions/{id}: any other one needs a step-up, as all others at once do, because a thief could end
 * them one by one. */

/* Empty: not the name of a session. */
static struct text read_sid(const struct exchange *exchange)
{
    struct text id = exchange->match.id;

    return text_starts_with(id, TEXT(SESSION_PREFIX)) && id.len < sizeof SESSION_PREFIX + ID_TEXT_BYTES
               ? text_skip(id, strlen(SESSION_PREFIX))
               : (struct text){0};
}

static void one_ended(void *arg, enum store_result result, int64_t count UNUSED)
{
    struct exchange *exchange = arg;
    struct text sid = read_sid(exchange);

    if (result == STORE_OK && text_equal(sid, text_of(exchange->session->sid)))
        session_cookie_clear(exchange);
    if (result == STORE_OK)
        exchange_log_own(exchange, "session ended", sid);
    exchange_finish(exchange, result);
}

void own_session_end(struct exchange *exchange)
{
    struct audit_source source = exchange_source(exchange);
    struct text sid = read_sid(exchange);
    bool is_other = !text_equal(sid, text_of(exchange->session->sid));

    if (is_other && exchange->session->step_up_expires_ms == 0) {
        exchange_refuse(exchange, PROBLEM_STEP_UP_REQUIRED);
        return;
    }
    source.credential.needs_step_up = is_other;
    exchange->missing = PROBLEM_SESSION_NOT_FOUND;
    if (sid.len == 0) {
        exchange_refuse(exchange, exchange->missing);
        return;
    }
    http_request_hold(exchange->request);
    session_store_stop(exchange_store(exchange), exchange_actor(exchange), sid, NULL, &source, one_ended, exchange);
}

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

static void reply_sessions(struct exchange *exchange, const struct session_row *sessions, size_t count)
{
    struct session_row *sorted = http_request_alloc(exchange->request, (count + 1) * sizeof *sorted);
    char *storage = http_request_alloc(exchange->request, ANSWER_MAX_BYTES);
    struct buf out;

    memcpy(sorted, sessions, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_last_use);
    buf_init_fixed(&out, storage, ANSWER_MAX_BYTES);
    view_sessions(&(struct json_writer){.out = &out}, sorted, count, exchange->session->sid);
    http_reply_json(exchange->request, 200, &out);
}

static void sessions_were_listed(void *arg, enum store_result result, const struct session_row *sessions, size_t count)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK)
        reply_sessions(exchange, sessions, count);
    else
        exchange_refuse_store(exchange, result);
    http_request_release(exchange->request);
}

void own_sessions_list(struct exchange *exchange)
{
    http_request_hold(exchange->request);
    session_store_list(exchange_store(exchange), exchange_actor(exchange), 1, sessions_were_listed, exchange);
}

static void log_ended(const struct exchange *exchange, const char *message, struct text sid)
{
    exchange_log(exchange, message, id_text(exchange_account(exchange)), id_text(exchange_actor(exchange)), sid);
}

/* DELETE /v1/console/sessions: all others */

static void others_ended(void *arg, enum store_result result, int64_t count)
{
    struct exchange *exchange = arg;
    char storage[ANSWER_SMALL_BYTES];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    struct json_writer w = {.out = &out};
    json_object_begin(&w);
    json_key(&w, "sessions_ended");
    json_put_integer(&w, count);
    json_object_end(&w);
    if (result == STORE_OK) {
        http_reply_json(exchange->request, 200, &out);
        log_ended(exchange, "other sessions ended", (struct text){0});
    } else {
        exchange_refuse_store(exchange, result);
    }
    http_request_release(exchange->request);
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

static void one_ended(void *arg, enum store_result result, int64_t count)
{
    struct exchange *exchange = arg;
    struct text sid = read_sid(exchange);

    (void)count;
    if (result == STORE_OK) {
        if (text_equal(sid, text_of(exchange->session->sid)))
            session_cookie_clear(exchange);
        http_reply(exchange->request, 204, (struct text){0}, (struct text){0});
        log_ended(exchange, "session ended", sid);
    } else if (result == STORE_NOT_FOUND) {
        exchange_refuse(exchange, PROBLEM_SESSION_NOT_FOUND);
    } else {
        exchange_refuse_store(exchange, result);
    }
    http_request_release(exchange->request);
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
    if (sid.len == 0) {
        exchange_refuse(exchange, PROBLEM_SESSION_NOT_FOUND);
        return;
    }
    http_request_hold(exchange->request);
    session_store_stop(exchange_store(exchange), exchange_actor(exchange), sid, NULL, &source, one_ended, exchange);
}

/* Users' decisions about devices that ask to be enrolled. An enrolment that another account has decided is answered as
 * not found, and so is one that has expired or was claimed by its device. */
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "views_internal.h"

struct enrolment_visit {
    struct exchange *exchange;
    const char *decision; /* for the log; NULL: none */
    struct user_code code;
    struct token_digests digests;
    char user_tag[THROTTLE_TAG_CHARS + 1];
};

static void enrolment_found(void *arg, enum store_result result, const struct device_enrolment *enrolment,
                            uint32_t retry_after_s);

/* NULL if the exchange has been refused. Text that does not have the form of a code does not count as a guess. */
static struct enrolment_visit *visit_begin(struct exchange *exchange, const char *decision)
{
    struct enrolment_visit *visit = http_request_alloc(exchange->request, sizeof *visit);
    struct keyring *keyring = exchange->service->keyring;

    visit->exchange = exchange;
    visit->decision = decision;
    if (!user_code_parse(exchange->match.id, &visit->code)) {
        exchange_refuse(exchange, PROBLEM_ENROLMENT_NOT_FOUND);
        return NULL;
    }
    user_code_digests(keyring, &visit->code, &visit->digests);
    throttle_tag(keyring, TEXT("user code"), id_text(exchange_actor(exchange)), visit->user_tag);
    http_request_hold(exchange->request);
    return visit;
}

/* GET /v1/console/device_enrolments/{user_code} */

void enrolment_show(struct exchange *exchange)
{
    struct enrolment_visit *visit = visit_begin(exchange, NULL);

    if (visit)
        device_store_find(exchange->service->partitions, &visit->digests, exchange_account(exchange),
                          text_of(visit->user_tag), enrolment_found, visit);
}

/* POST …/approve and …/deny. Repeating a decision gives the same response. A denied enrolment cannot be approved any
 * more: 404. */

static void decide(struct exchange *exchange, bool approve)
{
    struct enrolment_visit *visit = visit_begin(exchange, approve ? "device approved" : "device denied");
    struct audit_source source = exchange_source(exchange);

    if (visit)
        device_store_decide(exchange->service->partitions, &visit->digests, exchange_account(exchange),
                            text_of(visit->user_tag), approve, &source, enrolment_found, visit);
}

void enrolment_approve(struct exchange *exchange)
{
    decide(exchange, true);
}

void enrolment_deny(struct exchange *exchange)
{
    decide(exchange, false);
}

static void reply_enrolment(const struct enrolment_visit *visit, const struct device_enrolment *enrolment)
{
    struct exchange *exchange = visit->exchange;
    char storage[ANSWER_SMALL_BYTES];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    view_enrolment(&(struct json_writer){.out = &out}, enrolment, &visit->code);
    http_reply_json(exchange->request, 200, &out);
    if (visit->decision)
        exchange_log(exchange, visit->decision, id_text(exchange_account(exchange)), id_text(exchange_actor(exchange)),
                     enrolment->name);
}

static void refuse_throttled(struct exchange *exchange, uint32_t retry_after_s)
{
    exchange_log(exchange, "user codes throttled", id_text(exchange_account(exchange)),
                 id_text(exchange_actor(exchange)), (struct text){0});
    exchange_refuse_throttled(exchange, retry_after_s);
}

static void enrolment_found(void *arg, enum store_result result, const struct device_enrolment *enrolment,
                            uint32_t retry_after_s)
{
    const struct enrolment_visit *visit = arg;
    struct exchange *exchange = visit->exchange;

    if (result == STORE_OK)
        reply_enrolment(visit, enrolment);
    else if (result == STORE_NOT_FOUND)
        exchange_refuse(exchange, PROBLEM_ENROLMENT_NOT_FOUND);
    else if (result == STORE_REFUSED)
        refuse_throttled(exchange, retry_after_s);
    else if (result == STORE_LIMITED)
        exchange_refuse_limited(exchange, retry_after_s);
    else
        exchange_refuse_store(exchange, result);
    http_request_release(exchange->request);
}

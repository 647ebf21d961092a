/* Users' decisions about devices that ask to be enrolled. An enrolment that another account has decided is answered as
 * not found, and so is one that has expired or was claimed by its device. */
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "views_internal.h"

struct user_code_request {
    struct exchange *exchange;
    const char *decision; /* for the log; NULL: none */
    struct user_code code;
    struct token_digests digests;
    char user_tag[THROTTLE_TAG_CHARS + 1];
};

static void enrolment_found(void *arg, enum store_result result, const struct device_enrolment *enrolment,
                            uint32_t retry_after_s);

/* NULL if the exchange has been refused. Text that does not have the form of a code does not count as a guess. */
static struct user_code_request *user_code_read(struct exchange *exchange, const char *decision)
{
    struct user_code_request *op = http_request_alloc(exchange->request, sizeof *op);
    struct keyring *keyring = exchange->service->keyring;

    op->exchange = exchange;
    op->decision = decision;
    exchange->missing = PROBLEM_ENROLMENT_NOT_FOUND;
    if (!user_code_parse(exchange->match.id, &op->code)) {
        exchange_refuse(exchange, exchange->missing);
        return NULL;
    }
    user_code_digests(keyring, &op->code, &op->digests);
    throttle_tag(keyring, TEXT("user code"), id_text(exchange_actor(exchange)), op->user_tag);
    http_request_hold(exchange->request);
    return op;
}

/* GET /v1/console/device_enrolments/{user_code} */

void enrolment_show(struct exchange *exchange)
{
    struct user_code_request *op = user_code_read(exchange, NULL);

    if (op)
        device_store_find(exchange->service->partitions, &op->digests, exchange_account(exchange),
                          text_of(op->user_tag), enrolment_found, op);
}

/* POST …/approve and …/deny. Repeating a decision gives the same response. A denied enrolment cannot be approved any
 * more: 404. */

static void decide(struct exchange *exchange, bool approve)
{
    struct user_code_request *op = user_code_read(exchange, approve ? "device approved" : "device denied");
    struct audit_source source = exchange_source(exchange);

    if (op)
        device_store_decide(exchange->service->partitions, &op->digests, exchange_account(exchange),
                            text_of(op->user_tag), approve, &source, enrolment_found, op);
}

void enrolment_approve(struct exchange *exchange)
{
    decide(exchange, true);
}

void enrolment_deny(struct exchange *exchange)
{
    decide(exchange, false);
}

static void reply_enrolment(const struct user_code_request *op, const struct device_enrolment *enrolment)
{
    view_enrolment(exchange_answer(op->exchange, 200), enrolment, &op->code);
    exchange_reply(op->exchange);
    if (op->decision)
        exchange_log_own(op->exchange, op->decision, enrolment->name);
}

static void refuse_throttled(struct exchange *exchange, uint32_t retry_after_s)
{
    exchange_log_own(exchange, "user codes throttled", (struct text){0});
    exchange_refuse_throttled(exchange, retry_after_s);
}

static void enrolment_found(void *arg, enum store_result result, const struct device_enrolment *enrolment,
                            uint32_t retry_after_s)
{
    const struct user_code_request *op = arg;
    struct exchange *exchange = op->exchange;

    if (result == STORE_OK)
        reply_enrolment(op, enrolment);
    else if (result == STORE_REFUSED)
        refuse_throttled(exchange, retry_after_s);
    else
        exchange_refuse_change(exchange, result, retry_after_s);
    http_request_release(exchange->request);
}

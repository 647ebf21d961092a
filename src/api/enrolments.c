/* What users decide about devices that ask to be enrolled. An enrolment of which another account has decided is as
 * unknown as one that does not exist; so is one that is over: expired, or claimed by its device. */
#include "call_internal.h"
#include "handlers_internal.h"
#include "views_internal.h"

struct enrolment_visit {
    struct call *call;
    const char *decision; /* for the log; NULL: none */
    struct user_code code;
    struct token_digests digests;
    char user_tag[THROTTLE_TAG_CHARS + 1];
};

static void enrolment_found(void *arg, enum store_result result, const struct device_enrolment *enrolment,
                            uint32_t retry_after_s);

/* NULL: refused. What has not the form of a code is not counted as a guess. */
static struct enrolment_visit *visit_begin(struct call *call, const char *decision)
{
    struct enrolment_visit *visit = http_request_alloc(call->request, sizeof *visit);
    struct keyring *keyring = call->service->keyring;

    visit->call = call;
    visit->decision = decision;
    if (!user_code_parse(call->match.id, &visit->code)) {
        call_refuse(call, PROBLEM_NOT_FOUND);
        return NULL;
    }
    user_code_digests(keyring, &visit->code, &visit->digests);
    throttle_tag(keyring, TEXT("user code"), id_text(call_actor(call)), visit->user_tag);
    http_request_hold(call->request);
    return visit;
}

/* GET /v1/console/device_enrolments/{user_code} */

void enrolment_show(struct call *call)
{
    struct enrolment_visit *visit = visit_begin(call, NULL);

    if (visit)
        device_store_find(call->service->store, &visit->digests, call_account(call), text_of(visit->user_tag),
                          enrolment_found, visit);
}

/* POST …/approve and …/deny. The same again is answered the same; what was denied can't be approved any more: 404. */

static void decide(struct call *call, bool approve)
{
    struct enrolment_visit *visit = visit_begin(call, approve ? "device approved" : "device denied");
    struct audit_source source = call_source(call);

    if (visit)
        device_store_decide(call->service->store, &visit->digests, call_account(call), text_of(visit->user_tag),
                            approve, &source, enrolment_found, visit);
}

void enrolment_approve(struct call *call)
{
    decide(call, true);
}

void enrolment_deny(struct call *call)
{
    decide(call, false);
}

static void reply_enrolment(const struct enrolment_visit *visit, const struct device_enrolment *enrolment)
{
    struct call *call = visit->call;
    char storage[ANSWER_SMALL_BYTES];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    view_enrolment(&(struct json_writer){.out = &out}, enrolment, &visit->code);
    http_reply_json(call->request, 200, &out);
    if (visit->decision)
        call_log(call, visit->decision, id_text(call_account(call)), id_text(call_actor(call)), enrolment->name);
}

static void refuse_throttled(struct call *call, uint32_t retry_after_s)
{
    call_log(call, "user codes throttled", id_text(call_account(call)), id_text(call_actor(call)), (struct text){0});
    call_refuse_throttled(call, retry_after_s);
}

static void enrolment_found(void *arg, enum store_result result, const struct device_enrolment *enrolment,
                            uint32_t retry_after_s)
{
    const struct enrolment_visit *visit = arg;
    struct call *call = visit->call;

    if (result == STORE_OK)
        reply_enrolment(visit, enrolment);
    else if (result == STORE_NOT_FOUND)
        call_refuse(call, PROBLEM_NOT_FOUND);
    else if (result == STORE_REFUSED)
        refuse_throttled(call, retry_after_s);
    else if (result == STORE_LIMITED)
        call_refuse_limited(call, retry_after_s);
    else
        call_refuse_store(call, result);
    http_request_release(call->request);
}

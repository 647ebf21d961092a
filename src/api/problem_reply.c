#include "problem_internal.h"

#include "base/check.h"
#include "base/metrics.h"

enum { BODY_BYTES = 4096, NUMBER_BYTES = 24 };

static void add_number_header(struct http_request *request, struct text name, uint64_t value)
{
    struct buf out = BUF_FIXED(NUMBER_BYTES);

    buf_append_u64(&out, value);
    http_response_header(request, name, buf_text(&out));
}

void problem_reply(struct http_request *request, struct text origin, const struct problem *problem)
{
    int status = problem_status(problem->code);
    uint32_t retry_after_s = problem->retry_after_s == 0 && status == 503 ? 1 : problem->retry_after_s;
    char body_storage[BODY_BYTES], challenge_storage[PROBLEM_CHALLENGE_BYTES];
    struct buf body, challenge;

    metric_count_label(METRICS_REFUSALS, problem->code);
    buf_init_fixed(&body, body_storage, sizeof body_storage);
    buf_init_fixed(&challenge, challenge_storage, sizeof challenge_storage);
    problem_print_challenge(problem, &challenge);
    if (problem->is_oauth)
        status = problem_print_oauth(request, problem, &body);
    else
        problem_print(problem, http_request_id(request), origin, &body);
    CHECK(!body.failed && !challenge.failed);
    if (challenge.len > 0)
        http_response_header(request, TEXT("WWW-Authenticate"), buf_text(&challenge));
    if (retry_after_s > 0)
        add_number_header(request, TEXT("Retry-After"), retry_after_s);
    if (problem->allow)
        http_response_header(request, TEXT("Allow"), text_of(problem->allow));
    http_reply(request, problem->status ? problem->status : status, TEXT("application/json"), buf_text(&body));
}

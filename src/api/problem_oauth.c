#include "problem_internal.h"
#include "views_internal.h"

#include <stdio.h>

int problem_print_oauth(struct http_request *request, const struct problem *problem, struct buf *out)
{
    static const struct {
        enum problem_code code;
        const char *error;
        int status;
    } ERRORS[] = {
        {PROBLEM_RATE_LIMITED, "slow_down", 400},
        {PROBLEM_ACCOUNT_SUSPENDED, "access_denied", 400},
        {PROBLEM_KEY_LIMIT_REACHED, "access_denied", 400},
        {PROBLEM_INTERNAL_ERROR, "server_error", 500},
        {PROBLEM_STORE_UNAVAILABLE, "temporarily_unavailable", 503},
        {PROBLEM_OVERLOADED, "temporarily_unavailable", 503},
        {PROBLEM_SHUTTING_DOWN, "temporarily_unavailable", 503},
    };
    const char *error = "invalid_request";
    char description[OAUTH_DESCRIPTION_BYTES];
    int status = problem_status(problem->code);

    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].code == problem->code) {
            error = ERRORS[i].error;
            status = ERRORS[i].status;
        }
    snprintf(description, sizeof description, "%s%s%s", problem_message(problem),
             problem->has_param ? " It is called " : "", problem->has_param ? problem->param : "");
    http_response_header(request, TEXT("Pragma"), TEXT("no-cache"));
    view_oauth_error(&(struct json_writer){.out = out}, error, description);
    return status;
}

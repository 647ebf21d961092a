/* Attempts to sign in and to step up (store/session_store.h). A sign-in begins in three steps: the email's partition
 * names the user; the user's partition returns the record; the partitions of the counters reserve the attempt. An email
 * that nobody has takes the same steps, with its own partition as home, so that the time of an answer does not differ.
 */
#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "person_read.h"
#include "throttle.h"
#include "engine/verb.h"
#include <stdlib.h>
#include <string.h>

struct begin_call {
    const struct partitions *partitions;
    bool is_by_email;
    char who[EMAIL_MAX_BYTES + 1]; /* an email or a user's id */
    struct login_browser browser;
    const struct token_digests *recovery_code;
    struct login_begin begin;
    struct user_record user;
    login_begun *done;
    void *arg;
};

static void email_found(void *arg, enum store_result result, const struct redis_reply *reply);
static void call_home(struct begin_call *call, struct text user);
static void home_answered(void *arg, enum store_result result, const struct redis_reply *reply);
static void attempt_reserved(void *arg, enum store_result result, const struct throttle_verdict *verdict);

static void begin_finish(struct begin_call *call, enum store_result result)
{
    call->done(call->arg, result, &call->begin);
    secure_wipe(call, sizeof *call);
    free(call);
}

static struct begin_call *begin_call_new(struct text who, const struct login_attempt *attempt, login_begun *done,
                                         void *arg)
{
    struct begin_call *call = mem_alloc(sizeof *call);

    *call = (struct begin_call){.begin.attempt = *attempt, .done = done, .arg = arg};
    CHECK(who.len < sizeof call->who);
    memcpy(call->who, who.ptr, who.len);
    return call;
}

/* SCRIPT_READS throughout, because a reservation need not wait for replicas. */
void session_store_begin_login(const struct partitions *partitions, struct text email,
                               const struct login_attempt *attempt, const struct login_browser *browser,
                               const struct token_digests *recovery_code, login_begun *done, void *arg)
{
    struct begin_call *call = begin_call_new(email, attempt, done, arg);
    struct login_attempt *begun = &call->begin.attempt;

    call->partitions = partitions;
    call->is_by_email = true;
    if (browser)
        call->browser = *browser;
    call->recovery_code = recovery_code;
    begun->home = partition_of_bucket(partitions, bucket_of_text(email));
    begun->counts_at_home = false;
    store_call_script(begun->home, SCRIPT_email_find, SCRIPT_READS, 1, &email, email_found, call);
}

static void email_found(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct begin_call *call = arg;
    struct login_begin *begin = &call->begin;
    struct id account;

    if (result == STORE_NOT_FOUND) {
        call_home(call, TEXT(""));
    } else if (result != STORE_OK) {
        begin_finish(call, result);
    } else if (!reply_id(reply_at(reply, 0), ID_USER, &begin->throttled) ||
               !reply_id(reply_at(reply, 1), ID_ACCOUNT, &account)) {
        store_malformed(begin->attempt.home, "owner of an email");
        begin_finish(call, STORE_UNAVAILABLE);
    } else {
        begin->throttled_is_known = true;
        begin->attempt.home = partition_of_account(call->partitions, &account);
        call_home(call, id_text(&begin->throttled));
    }
}

void session_store_begin_step_up(struct store *store, const struct id *user, const struct login_attempt *attempt,
                                 login_begun *done, void *arg)
{
    struct begin_call *call = begin_call_new(id_text(user), attempt, done, arg);

    call->begin.attempt.home = store;
    call->begin.attempt.counts_at_home = true;
    call_home(call, id_text(user));
}

static void call_home(struct begin_call *call, struct text user)
{
    const struct login_attempt *attempt = &call->begin.attempt;
    struct script_args args;

    args_begin(&args);
    args_add(&args, user);
    args_add(&args, attempt->id);
    args_add(&args, throttle_counters_at_home(attempt));
    args_add(&args, call->browser.counters);
    args_add(&args, call->browser.digest);
    if (call->recovery_code)
        args_add_digests(&args, call->recovery_code);
    else
        args_add(&args, TEXT(""));
    store_call_script(attempt->home, SCRIPT_login_begin, SCRIPT_READS, args.count, args.argv, home_answered, call);
}

static bool home_read(const struct redis_reply *reply, struct login_begin *ret_begin, struct user_record *ret_user)
{
    const struct redis_reply *item = reply_at(reply, 0);

    if (!item || !reply_flag(reply_at(reply, 1), &ret_begin->browser_is_known) ||
        !reply_flag(reply_at(reply, 2), &ret_begin->is_locked) ||
        !reply_flag(reply_at(reply, 3), &ret_begin->recovery_code_fits) ||
        !reply_integer(reply_at(reply, 4), &ret_begin->attempt.forgiven_ms))
        return false;
    if (item->type == REPLY_NIL)
        return true;
    ret_begin->user = ret_user;
    return user_record_read(item, true, ret_user);
}

/* If the user's record was altered, or the email leads to another user's record, there is no such user. */
static enum store_result begin_believe(struct begin_call *call)
{
    struct login_begin *begin = &call->begin;
    const struct user_record *user = begin->user;
    struct store *home = begin->attempt.home;
    enum store_result result = STORE_OK;

    if (user && text_equal(text_of(call->who), call->is_by_email ? text_of(user->email) : id_text(&user->id)))
        result = user_record_believe(home, user);
    else if (user)
        result = store_altered(home, "email", id_text(&user->id));
    if (result == STORE_NOT_FOUND) {
        begin->user = NULL;
        result = STORE_OK;
    }
    return result;
}

static void home_answered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct begin_call *call = arg;
    struct login_begin *begin = &call->begin;

    if ((result == STORE_OK && !home_read(reply, begin, &call->user)) ||
        (result == STORE_REFUSED && !reply_seconds(reply_at(reply, 0), &begin->retry_after_s))) {
        store_malformed(begin->attempt.home, "login attempt");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_OK)
        result = begin_believe(call);
    if (begin->browser_is_known) {
        begin->attempt.counters = call->browser.counters;
        begin->attempt.counts_at_home = true;
    }
    if (result == STORE_OK)
        throttle_judge(call->partitions, &begin->attempt, THROTTLE_RESERVE, attempt_reserved, call);
    else
        begin_finish(call, result);
}

static void attempt_reserved(void *arg, enum store_result result, const struct throttle_verdict *verdict)
{
    struct begin_call *call = arg;

    call->begin.retry_after_s = verdict->retry_after_s;
    if (result != STORE_OK)
        call->begin.user = NULL;
    begin_finish(call, result);
}

/* Ends */

struct fail_call {
    const struct partitions *partitions;
    const struct id *user;
    struct login_attempt attempt;
    bool only_code_wrong;
    struct audit_source source;
    login_failed *done;
    void *arg;
};

static void failure_counted(void *arg, enum store_result result, const struct throttle_verdict *verdict);
static void failure_noted(void *arg, enum store_result result, const struct redis_reply *reply);

static void fail_finish(struct fail_call *call, enum store_result result, const struct login_failure *failure)
{
    call->done(call->arg, result, failure);
    free(call);
}

void session_store_fail_login(const struct partitions *partitions, const struct id *user,
                              const struct login_attempt *attempt, bool only_code_wrong,
                              const struct audit_source *source, login_failed *done, void *arg)
{
    struct fail_call *call = mem_alloc(sizeof *call);

    *call = (struct fail_call){partitions, user, *attempt, only_code_wrong, *source, done, arg};
    throttle_judge(partitions, attempt, THROTTLE_FAIL, failure_counted, call);
}

static void failure_counted(void *arg, enum store_result result, const struct throttle_verdict *verdict)
{
    const struct login_failure refused = {.retry_after_s = verdict->retry_after_s};
    struct fail_call *call = arg;
    struct store *home = call->attempt.home;
    struct script_args args;

    if (result != STORE_OK) {
        fail_finish(call, result, &refused);
        return;
    }
    args_begin(&args);
    args_add(&args, call->user ? id_text(call->user) : TEXT(""));
    args_add(&args, call->attempt.id);
    args_add(&args, throttle_counters_at_home(&call->attempt));
    args_add(&args, call->only_code_wrong ? TEXT("1") : TEXT("0"));
    args_add_client(&args, home, &call->source);
    args_add(&args, call->source.actor);
    args_add(&args, verdict->closes ? TEXT("1") : TEXT("0"));
    store_call_script(home, SCRIPT_login_fail, SCRIPT_CHANGES, args.count, args.argv, failure_noted, call);
}

static bool failure_read(enum store_result result, const struct redis_reply *reply, struct login_failure *ret_failure)
{
    if (result == STORE_REFUSED)
        return reply_seconds(reply_at(reply, 0), &ret_failure->retry_after_s);
    return reply_flag(reply_at(reply, 0), &ret_failure->closes) && reply_flag(reply_at(reply, 1), &ret_failure->locks);
}

static void failure_noted(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct fail_call *call = arg;
    struct login_failure failure = {0};

    if ((result == STORE_OK || result == STORE_REFUSED) && !failure_read(result, reply, &failure)) {
        store_malformed(call->attempt.home, "failed login");
        result = STORE_UNKNOWN;
    }
    fail_finish(call, result, &failure);
}

void session_store_give_back(const struct partitions *partitions, const struct login_attempt *attempt)
{
    throttle_give_back(partitions, attempt);
}

#include "store/session_store.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "lease/lease.h"
#include "verb_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_DIGEST_BYTES = 32 };

static void args_add_limits(struct script_args *args, const struct session_limits *limits)
{
    args_add_int(args, limits->idle_ms);
    args_add_int(args, limits->absolute_ms);
    args_add_int(args, limits->step_up_ms);
}

/* The parts of a session that its MAC binds. */

struct session_seal {
    struct record_parts record;
    struct text parts[7];
    char storage[72]; /* of the times */
};

static struct text print_time(struct buf *out, int64_t ms)
{
    size_t from = out->len;

    buf_append_u64(out, (uint64_t)ms);
    CHECK(!out->failed);
    return text_skip(buf_text(out), from);
}

/* step_up_ms: 0 for none. */
static void session_seal_fill(struct session_seal *seal, const uint8_t *digest, const struct session_record *session,
                              int64_t step_up_ms)
{
    struct buf times;

    buf_init_fixed(&times, seal->storage, sizeof seal->storage);
    seal->parts[0] = (struct text){(const char *)digest, TOKEN_DIGEST_BYTES};
    seal->parts[1] = text_of(session->sid);
    seal->parts[2] = id_text(&session->user.id);
    seal->parts[3] = id_text(&session->user.account);
    seal->parts[4] = print_time(&times, session->created_ms);
    seal->parts[5] = print_time(&times, session->ends_ms);
    seal->parts[6] = print_time(&times, step_up_ms);
    seal->record = (struct record_parts){RECORD_SESSION, sizeof seal->parts / sizeof *seal->parts, seal->parts};
}

/* Attempts */

struct login_call {
    struct store *store;
    bool is_by_email;
    char who[EMAIL_MAX_BYTES + 1];
    login_begun *done;
    void *arg;
};

static bool login_read_allowed(const struct redis_reply *reply, struct login_begin *ret_begin,
                               struct user_record *ret_user)
{
    const struct redis_reply *item = reply_at(reply, 0);
    int64_t browser, locked, recovery;

    if (!item || !reply_integer(reply_at(reply, 1), &browser) || !reply_integer(reply_at(reply, 2), &locked) ||
        !reply_integer(reply_at(reply, 3), &recovery))
        return false;
    ret_begin->browser_is_known = browser != 0;
    ret_begin->is_locked = locked != 0;
    ret_begin->recovery_code_fits = recovery != 0;
    if (item->type == REPLY_NIL)
        return true;
    ret_begin->user = ret_user;
    return user_record_read(item, true, ret_user);
}

static bool login_read_refused(const struct redis_reply *reply, struct login_begin *ret_begin)
{
    const struct redis_reply *item = reply_at(reply, 1);

    if (!item || !reply_wait(reply_at(reply, 0), &ret_begin->retry_after_s))
        return false;
    ret_begin->throttled_is_known = item->type != REPLY_NIL;
    return !ret_begin->throttled_is_known || reply_id(item, ID_USER, &ret_begin->throttled);
}

/* If the user's record was altered, or the email leads to another user's record, there is no such user. */
static enum store_result login_believe(const struct login_call *call, struct login_begin *begin)
{
    const struct user_record *user = begin->user;
    enum store_result result = STORE_OK;

    if (user && text_equal(text_of(call->who), call->is_by_email ? text_of(user->email) : id_text(&user->id)))
        result = user_record_believe(call->store, user);
    else if (user)
        result = store_altered(call->store, "email", id_text(&user->id));
    if (result == STORE_NOT_FOUND) {
        begin->user = NULL;
        result = STORE_OK;
    }
    return result;
}

static void login_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct login_call call = *(struct login_call *)arg;
    struct user_record user;
    struct login_begin begin = {0};

    free(arg);
    if ((result == STORE_OK && !login_read_allowed(reply, &begin, &user)) ||
        (result == STORE_REFUSED && !login_read_refused(reply, &begin))) {
        store_malformed(call.store, "login attempt");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_OK)
        result = login_believe(&call, &begin);
    call.done(call.arg, result, &begin);
    secure_wipe(&user, sizeof user);
}

/* by: "email" or "user", the kind of `who`. SCRIPT_READS, because a reservation need not wait for replicas. */
static void begin_attempt(struct store *store, struct text by, struct text who, const struct login_attempt *attempt,
                          const struct login_browser *browser, const struct token_digests *recovery_code,
                          login_begun *done, void *arg)
{
    struct login_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct login_call){.store = store, .is_by_email = text_equal(by, TEXT("email")), .done = done, .arg = arg};
    CHECK(who.len < sizeof call->who);
    memcpy(call->who, who.ptr, who.len);
    args_begin(&args);
    args_add(&args, by);
    args_add(&args, who);
    args_add(&args, attempt->id);
    args_add(&args, attempt->counters);
    args_add(&args, browser ? browser->counters : TEXT(""));
    args_add(&args, browser ? browser->digest : TEXT(""));
    if (recovery_code)
        args_add_digests(&args, recovery_code);
    else
        args_add(&args, TEXT(""));
    store_call_script(store, SCRIPT_login_begin, SCRIPT_READS, args.count, args.argv, login_called, call);
}

void session_store_begin_login(struct store *store, struct text email, const struct login_attempt *attempt,
                               const struct login_browser *browser, const struct token_digests *recovery_code,
                               login_begun *done, void *arg)
{
    begin_attempt(store, TEXT("email"), email, attempt, browser, recovery_code, done, arg);
}

void session_store_begin_step_up(struct store *store, const struct id *user, const struct login_attempt *attempt,
                                 login_begun *done, void *arg)
{
    begin_attempt(store, TEXT("user"), id_text(user), attempt, NULL, NULL, done, arg);
}

struct fail_call {
    struct store *store;
    login_failed *done;
    void *arg;
};

static bool failure_read(enum store_result result, const struct redis_reply *reply, struct login_failure *ret_failure)
{
    int64_t closes, locks;

    if (result == STORE_REFUSED)
        return reply_wait(reply_at(reply, 0), &ret_failure->retry_after_s);
    if (!reply_integer(reply_at(reply, 0), &closes) || !reply_integer(reply_at(reply, 1), &locks))
        return false;
    ret_failure->closes = closes != 0;
    ret_failure->locks = locks != 0;
    return true;
}

static void failure_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct fail_call call = *(struct fail_call *)arg;
    struct login_failure failure = {0};

    free(arg);
    if ((result == STORE_OK || result == STORE_REFUSED) && !failure_read(result, reply, &failure)) {
        store_malformed(call.store, "failed login");
        result = STORE_UNKNOWN;
    }
    call.done(call.arg, result, &failure);
}

void session_store_fail_login(struct store *store, const struct id *user, const struct login_attempt *attempt,
                              bool only_code_wrong, const struct audit_source *source, login_failed *done, void *arg)
{
    struct fail_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct fail_call){store, done, arg};
    args_begin(&args);
    args_add(&args, user ? id_text(user) : TEXT(""));
    args_add(&args, attempt->id);
    args_add(&args, attempt->counters);
    args_add(&args, only_code_wrong ? TEXT("1") : TEXT("0"));
    args_add_client(&args, store, source);
    args_add(&args, source->actor);
    store_call_script(store, SCRIPT_login_fail, SCRIPT_CHANGES, args.count, args.argv, failure_called, call);
}

/* If this call is lost, the reservation expires within a minute. */
static void given_back(void *arg, enum store_result result, const struct redis_reply *reply)
{
    (void)arg;
    (void)result;
    (void)reply;
}

void session_store_give_back(struct store *store, const struct login_attempt *attempt)
{
    const struct text argv[] = {attempt->id, attempt->counters};

    store_call_script(store, SCRIPT_login_give_back, SCRIPT_READS, sizeof argv / sizeof *argv, argv, given_back, NULL);
}

struct session_call {
    struct store *store;
    bool is_change; /* which ends other sessions, or the old token of this one */
    uint8_t digest[TOKEN_DIGEST_BYTES];
    session_found *done;
    void *arg;
    struct session_record session;
    struct session_notices notices; /* of the session */
};

static bool session_read(const struct redis_reply *reply, struct session_record *ret_session)
{
    return reply_chars(reply_at(reply, 0), ret_session->sid, sizeof ret_session->sid) &&
           reply_time(reply_at(reply, 1), &ret_session->created_ms) &&
           reply_time(reply_at(reply, 2), &ret_session->expires_ms) &&
           reply_integer(reply_at(reply, 3), &ret_session->step_up_expires_ms) &&
           ret_session->step_up_expires_ms >= 0 && user_record_read(reply_at(reply, 4), false, &ret_session->user);
}

struct stored_seal {
    struct id account;
    int64_t step_up_ms;
    struct text mac;
};

/* With what else is in the same part of the reply. */
static bool seal_read(const struct redis_reply *reply, struct session_record *ret_session, struct stored_seal *ret)
{
    int64_t expired = 0;
    bool is_whole = reply_id(reply_at(reply, 0), ID_ACCOUNT, &ret->account) &&
                    reply_time(reply_at(reply, 1), &ret_session->ends_ms) &&
                    reply_integer(reply_at(reply, 2), &ret->step_up_ms) && ret->step_up_ms >= 0 &&
                    reply_text(reply_at(reply, 3), &ret->mac) && reply_integer(reply_at(reply, 4), &expired);

    ret_session->password_expired = expired != 0;
    return is_whole;
}

/* Verifies the session, its user, and that they belong together. */
static enum store_result session_believe(const struct session_call *call, const struct session_record *session,
                                         const struct stored_seal *stored)
{
    struct session_seal seal;
    enum store_result result;

    if (!id_equal(&stored->account, &session->user.account))
        return store_altered(call->store, "session", text_of(session->sid));
    session_seal_fill(&seal, call->digest, session, stored->step_up_ms);
    result = store_believe(call->store, &seal.record, stored->mac, "session", text_of(session->sid));
    return result == STORE_OK ? user_record_believe(call->store, &session->user) : result;
}

static bool new_browser_read(const struct redis_reply *reply, struct new_browser *ret)
{
    return reply_time(reply_at(reply, 0), &ret->at_ms) && reply_chars(reply_at(reply, 1), ret->ip, sizeof ret->ip) &&
           reply_chars(reply_at(reply, 2), ret->name, sizeof ret->name);
}

static bool notices_parse(const struct redis_reply *reply, struct session_notices *ret)
{
    const struct redis_reply *browsers = reply_at(reply, 5);

    *ret = (struct session_notices){0};
    if (!browsers || browsers->type != REPLY_ARRAY || browsers->count > NOTICES_BROWSERS_MAX ||
        !reply_integer(reply_at(reply, 0), &ret->last_sign_in_ms) || ret->last_sign_in_ms < 0 ||
        !reply_chars(reply_at(reply, 1), ret->last_sign_in_ip, sizeof ret->last_sign_in_ip) ||
        !reply_integer(reply_at(reply, 2), &ret->failed_sign_ins) || ret->failed_sign_ins < 0 ||
        !reply_integer(reply_at(reply, 3), &ret->attacked_ms) || ret->attacked_ms < 0 ||
        !reply_integer(reply_at(reply, 4), &ret->recovered_ms) || ret->recovered_ms < 0)
        return false;
    for (; ret->browser_count < browsers->count; ret->browser_count++)
        if (!new_browser_read(reply_at(browsers, ret->browser_count), &ret->browsers[ret->browser_count]))
            return false;
    return true;
}

/* Only the reply for a new session has these items. */
static bool beginning_read(const struct redis_reply *reply, struct session_record *ret_session,
                           struct session_notices *ret_notices)
{
    const struct redis_reply *item = reply_at(reply, 6);

    if (!item)
        return true;
    ret_session->notices = ret_notices;
    return reply_integer(item, &ret_session->attacked_ms) && ret_session->attacked_ms >= 0 &&
           notices_parse(reply_at(reply, 7), ret_notices);
}

static bool reads_session(const struct redis_reply *reply, struct session_record *ret_session,
                          struct session_notices *ret_notices, struct stored_seal *ret_stored)
{
    return session_read(reply, ret_session) && beginning_read(reply, ret_session, ret_notices) &&
           seal_read(reply_at(reply, 5), ret_session, ret_stored);
}

static void session_settled(void *arg, bool is_over)
{
    struct session_call *call = arg;

    call->done(call->arg, is_over ? STORE_OK : STORE_UNKNOWN, is_over ? &call->session : NULL);
    free(call);
}

static void session_finish(struct session_call *call, enum store_result result)
{
    bool has_session = result == STORE_OK || result == STORE_REFUSED || result == STORE_CONFLICT;

    if (result == STORE_OK && call->is_change) {
        barriers_settle(lease_barriers(store_lease(call->store)), session_settled, call);
        return;
    }
    call->done(call->arg, result, has_session ? &call->session : NULL);
    free(call);
}

static void session_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct session_call *call = arg;
    struct session_record *session = &call->session;
    struct stored_seal stored;

    if ((result == STORE_REFUSED && !reply_wait(reply_at(reply, 0), &session->retry_after_s)) ||
        (result == STORE_CONFLICT && !reply_time(reply_at(reply, 0), &session->totp_step)))
        result = STORE_UNAVAILABLE;
    if (result == STORE_OK && !reads_session(reply, session, &call->notices, &stored)) {
        store_malformed(call->store, "session");
        result = call->is_change ? STORE_UNKNOWN : STORE_UNAVAILABLE;
    }
    if (result == STORE_OK)
        result = session_believe(call, session, &stored);
    session_finish(call, result);
}

/* digest: of the session after the call. */
static void call_session(struct store *store, enum script script, enum script_link link, const uint8_t *digest,
                         const struct script_args *args, session_found *done, void *arg)
{
    struct session_call *call = mem_alloc(sizeof *call);

    *call = (struct session_call){.store = store, .is_change = link == SCRIPT_CHANGES, .done = done, .arg = arg};
    memcpy(call->digest, digest, sizeof call->digest);
    store_call_script(store, script, link, args->count, args->argv, session_called, call);
}

void session_store_create(struct store *store, const struct session_start *start, const struct session_limits *limits,
                          const struct audit_source *source, session_found *done, void *arg)
{
    const struct user_record *verified = start->verified;
    struct session_record session = {.user = {.id = start->user, .account = start->account}};
    struct session_seal seal;
    struct record_mac mac;
    struct script_args args;

    snprintf(session.sid, sizeof session.sid, "%s", start->sid);
    session.created_ms = store_clock_ms(store);
    session.ends_ms = session.created_ms + limits->absolute_ms;
    session_seal_fill(&seal, start->token_digest, &session, 0);
    record_mac_make(store_keyring(store), &seal.record, &mac);

    args_begin(&args);
    args_add(&args, id_text(&start->user));
    args_add_int(&args, start->totp_step);
    args_add_hex(&args, start->token_digest, TOKEN_DIGEST_BYTES);
    args_add(&args, text_of(start->sid));
    args_add(&args, start->attempt.id);
    args_add(&args, start->attempt.counters);
    args_add(&args, start->browser_digest);
    if (start->presented_digest)
        args_add_hex(&args, start->presented_digest, TOKEN_DIGEST_BYTES);
    else
        args_add(&args, TEXT(""));
    args_add_limits(&args, limits);
    args_add(&args, verified ? text_of(verified->password_hash) : TEXT(""));
    args_add(&args, verified ? (struct text){(const char *)verified->totp_sealed, TOTP_SEALED_BYTES} : TEXT(""));
    args_add_client(&args, store, source);
    args_add_int(&args, session.created_ms);
    args_add(&args, text_of(mac.text));
    args_add(&args, start->browser ? text_of(start->browser) : TEXT(""));
    call_session(store, SCRIPT_session_create, SCRIPT_CHANGES, start->token_digest, &args, done, arg);
}

void session_store_load(struct store *store, const uint8_t token_digest[32], const struct session_limits *limits,
                        struct text ip, session_found *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, token_digest, TOKEN_DIGEST_BYTES);
    args_add_limits(&args, limits);
    args_add(&args, ip);
    call_session(store, SCRIPT_session_load, SCRIPT_READS, token_digest, &args, done, arg);
}

/* The arguments that session_step_up.lua and user_password.lua share. mac: of the session with its new step-up. */
static void args_add_rotation(struct script_args *args, struct store *store, const struct session_proof *proof,
                              const uint8_t *new_digest, const struct audit_source *source, struct record_mac *ret_mac)
{
    int64_t step_up_ms = store_clock_ms(store);
    struct session_seal seal;

    session_seal_fill(&seal, new_digest, proof->session, step_up_ms);
    record_mac_make(store_keyring(store), &seal.record, ret_mac);
    args_add_hex(args, proof->digest, TOKEN_DIGEST_BYTES);
    args_add_hex(args, new_digest, TOKEN_DIGEST_BYTES);
    args_add_int(args, proof->totp_step);
    args_add(args, proof->attempt.id);
    args_add(args, proof->attempt.counters);
    args_add_limits(args, proof->limits);
    args_add_client(args, store, source);
    args_add_int(args, step_up_ms);
    args_add(args, text_of(ret_mac->text));
}

void session_store_step_up(struct store *store, const struct session_proof *proof, const uint8_t new_digest[32],
                           const struct audit_source *source, session_found *done, void *arg)
{
    struct script_args args;
    struct record_mac mac;

    args_begin(&args);
    args_add_rotation(&args, store, proof, new_digest, source, &mac);
    call_session(store, SCRIPT_session_step_up, SCRIPT_CHANGES, new_digest, &args, done, arg);
}

void session_store_change_password(struct store *store, const struct session_proof *proof, const uint8_t new_digest[32],
                                   const char *verified_hash, const char *new_hash, const struct audit_source *source,
                                   session_found *done, void *arg)
{
    struct script_args args;
    struct record_mac mac;

    args_begin(&args);
    args_add_rotation(&args, store, proof, new_digest, source, &mac);
    args_add(&args, text_of(verified_hash));
    args_add(&args, text_of(new_hash));
    call_session(store, SCRIPT_user_password, SCRIPT_CHANGES, new_digest, &args, done, arg);
}

void session_store_end(struct store *store, const uint8_t token_digest[32], const struct audit_source *source,
                       store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, token_digest, TOKEN_DIGEST_BYTES);
    args_add_client(&args, store, source);
    verb_call_ending(store, SCRIPT_session_end, &args, done, arg);
}

struct notices_call {
    struct store *store;
    notices_read *done;
    void *arg;
};

static void notices_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct notices_call call = *(struct notices_call *)arg;
    struct session_notices notices;

    free(arg);
    if (result == STORE_OK && !notices_parse(reply_at(reply, 0), &notices)) {
        store_malformed(call.store, "notices");
        result = STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, result == STORE_OK ? &notices : NULL);
}

void session_store_read_notices(struct store *store, const struct id *user, const uint8_t token_digest[32],
                                notices_read *done, void *arg)
{
    struct notices_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct notices_call){store, done, arg};
    args_begin(&args);
    args_add(&args, id_text(user));
    args_add_hex(&args, token_digest, TOKEN_DIGEST_BYTES);
    store_call_script(store, SCRIPT_session_notices, SCRIPT_READS, args.count, args.argv, notices_called, call);
}

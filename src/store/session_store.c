#include "store/session_store.h"

#include "base/mem.h"
#include "base/secure.h"
#include "verb_internal.h"
#include <stdlib.h>
#include <string.h>

enum { TOKEN_DIGEST_BYTES = 32 };

static void args_add_limits(struct script_args *args, const struct session_limits *limits)
{
    args_add_int(args, limits->idle_ms);
    args_add_int(args, limits->absolute_ms);
    args_add_int(args, limits->step_up_ms);
}

struct login_call {
    struct store *store;
    login_begun *done;
    void *arg;
};

static bool login_reply_read(enum store_result result, const struct redis_reply *reply, struct user_record *ret_user,
                             bool *ret_known, uint32_t *ret_retry_after_s)
{
    const struct redis_reply *item = reply_at(reply, 0);
    int64_t seconds;

    if (result == STORE_REFUSED) {
        if (!reply_integer(item, &seconds) || seconds < 1 || seconds > UINT32_MAX)
            return false;
        *ret_retry_after_s = (uint32_t)seconds;
        return true;
    }
    *ret_known = item && item->type != REPLY_NIL;
    return item && (!*ret_known || user_record_read(item, true, ret_user));
}

static void login_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct login_call call = *(struct login_call *)arg;
    struct user_record user;
    bool known = false;
    uint32_t retry_after_s = 0;

    free(arg);
    if ((result == STORE_OK || result == STORE_REFUSED) &&
        !login_reply_read(result, reply, &user, &known, &retry_after_s)) {
        store_malformed(call.store, "login attempt");
        result = STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, result == STORE_OK && known ? &user : NULL, retry_after_s);
    secure_wipe(&user, sizeof user);
}

/* by: "email" or "user", what `who` is. The counters need not wait for replicas. */
static void begin_attempt(struct store *store, struct text by, struct text who, struct text user_tag,
                          struct text ip_tag, login_begun *done, void *arg)
{
    struct login_call *call = mem_alloc(sizeof *call);
    const struct text argv[] = {by, who, user_tag, ip_tag};

    *call = (struct login_call){store, done, arg};
    store_call_script(store, SCRIPT_login_begin, SCRIPT_READS, sizeof argv / sizeof *argv, argv, login_called, call);
}

void session_store_begin_login(struct store *store, struct text email, struct text email_tag, struct text ip_tag,
                               login_begun *done, void *arg)
{
    begin_attempt(store, TEXT("email"), email, email_tag, ip_tag, done, arg);
}

void session_store_begin_step_up(struct store *store, const struct id *user, struct text user_tag, struct text ip_tag,
                                 login_begun *done, void *arg)
{
    begin_attempt(store, TEXT("user"), id_text(user), user_tag, ip_tag, done, arg);
}

void session_store_fail_login(struct store *store, const struct id *user, const struct audit_origin *origin,
                              store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, user ? id_text(user) : TEXT(""));
    args_add_source(&args, store, origin);
    verb_call_change(store, SCRIPT_login_fail, &args, done, arg);
}

struct session_call {
    struct store *store;
    bool is_change;
    session_found *done;
    void *arg;
};

static bool session_read(const struct redis_reply *reply, struct session_record *ret_session)
{
    return reply_chars(reply_at(reply, 0), ret_session->sid, sizeof ret_session->sid) &&
           reply_time(reply_at(reply, 1), &ret_session->created_ms) &&
           reply_time(reply_at(reply, 2), &ret_session->expires_ms) &&
           reply_integer(reply_at(reply, 3), &ret_session->step_up_expires_ms) &&
           ret_session->step_up_expires_ms >= 0 && user_record_read(reply_at(reply, 4), false, &ret_session->user);
}

static void session_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct session_call call = *(struct session_call *)arg;
    struct session_record session = {0};

    free(arg);
    if (result == STORE_OK && !session_read(reply, &session)) {
        store_malformed(call.store, "session");
        result = call.is_change ? STORE_UNKNOWN : STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, result == STORE_OK ? &session : NULL);
}

static void call_session(struct store *store, enum script script, enum script_link link, const struct script_args *args,
                         session_found *done, void *arg)
{
    struct session_call *call = mem_alloc(sizeof *call);

    *call = (struct session_call){store, link == SCRIPT_CHANGES, done, arg};
    store_call_script(store, script, link, args->count, args->argv, session_called, call);
}

void session_store_create(struct store *store, const struct session_start *start, const struct session_limits *limits,
                          const struct audit_origin *origin, session_found *done, void *arg)
{
    const struct user_record *verified = start->verified;
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(&start->user));
    args_add_int(&args, start->totp_step);
    args_add_hex(&args, start->token_digest, TOKEN_DIGEST_BYTES);
    args_add(&args, text_of(start->sid));
    args_add(&args, start->email_tag);
    args_add(&args, start->ip_tag);
    args_add_limits(&args, limits);
    args_add(&args, verified ? text_of(verified->password_hash) : TEXT(""));
    args_add(&args, verified ? (struct text){(const char *)verified->totp_sealed, TOTP_SEALED_BYTES} : TEXT(""));
    args_add_source(&args, store, origin);
    call_session(store, SCRIPT_session_create, SCRIPT_CHANGES, &args, done, arg);
}

void session_store_load(struct store *store, const uint8_t token_digest[32], const struct session_limits *limits,
                        session_found *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, token_digest, TOKEN_DIGEST_BYTES);
    args_add_limits(&args, limits);
    call_session(store, SCRIPT_session_load, SCRIPT_READS, &args, done, arg);
}

void session_store_step_up(struct store *store, const uint8_t old_digest[32], const uint8_t new_digest[32],
                           int64_t totp_step, struct text user_tag, struct text ip_tag,
                           const struct session_limits *limits, const struct audit_origin *origin, session_found *done,
                           void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, old_digest, TOKEN_DIGEST_BYTES);
    args_add_hex(&args, new_digest, TOKEN_DIGEST_BYTES);
    args_add_int(&args, totp_step);
    args_add(&args, user_tag);
    args_add(&args, ip_tag);
    args_add_limits(&args, limits);
    args_add_source(&args, store, origin);
    call_session(store, SCRIPT_session_step_up, SCRIPT_CHANGES, &args, done, arg);
}

void session_store_end(struct store *store, const uint8_t token_digest[32], const struct audit_origin *origin,
                       store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, token_digest, TOKEN_DIGEST_BYTES);
    args_add_source(&args, store, origin);
    verb_call_change(store, SCRIPT_session_end, &args, done, arg);
}

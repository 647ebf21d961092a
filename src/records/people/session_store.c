#include "records/session_store.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "lease/lease.h"
#include "person_read.h"
#include "engine/alias.h"
#include "throttle.h"
#include "engine/verb.h"
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
    seal->parts[4] = text_keep_u64(&times, (uint64_t)session->created_ms);
    seal->parts[5] = text_keep_u64(&times, (uint64_t)session->ends_ms);
    seal->parts[6] = text_keep_u64(&times, (uint64_t)step_up_ms);
    seal->record = (struct record_parts){RECORD_SESSION, sizeof seal->parts / sizeof *seal->parts, seal->parts};
}

struct session_call {
    struct store *store;
    bool is_change; /* which ends other sessions, or the old token of this one */
    uint8_t digest[TOKEN_DIGEST_BYTES];
    session_found *done;
    void *arg;
    struct session_record session;
    struct session_notices notices;    /* of the session */
    struct session_creation *creation; /* of a new session; else NULL */
};

struct session_creation {
    const struct partitions *partitions;
    struct session_start start;
    struct session_limits limits;
    struct audit_source source;
    struct store *presented_at; /* where the session is that the sign-in came with; NULL: it came with none */
};

/* Of a session, what only its MAC needs. */
struct stored_seal {
    struct id account;
    int64_t step_up_ms;
    struct text mac;
};

/* session_reply() in the prelude. */
static const struct reply_field SESSION_FIELDS[] = {
    REPLY_FIELD("sid", value_chars, session_record, sid),
    REPLY_FIELD("created", value_time, session_record, created_ms),
    REPLY_FIELD("expires", value_time, session_record, expires_ms),
    REPLY_FIELD("ends", value_time, session_record, ends_ms),
    REPLY_FIELD("step_up_expires", value_count, session_record, step_up_expires_ms),
    REPLY_FIELD("password_expired", value_flag, session_record, password_expired),
};
static const struct reply_field SEAL_FIELDS[] = {
    REPLY_ID("account", ID_ACCOUNT, stored_seal, account),
    REPLY_FIELD("step_up", value_count, stored_seal, step_up_ms),
    REPLY_FIELD_OR_NONE("mac", value_text, stored_seal, mac),
};

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

static const struct reply_field BROWSER_FIELDS[] = {
    REPLY_FIELD("at", value_time, new_browser, at_ms),
    REPLY_FIELD_OR_NONE("ip", value_chars, new_browser, ip),
    REPLY_FIELD_OR_NONE("name", value_chars, new_browser, name),
};

/* notices() in the prelude. */
static const struct reply_field NOTICE_FIELDS[] = {
    REPLY_FIELD_OR_NONE("last_sign_in_at", value_count, session_notices, last_sign_in_ms),
    REPLY_FIELD_OR_NONE("last_sign_in_ip", value_chars, session_notices, last_sign_in_ip),
    REPLY_FIELD("failed_sign_ins", value_count, session_notices, failed_sign_ins),
    REPLY_FIELD_OR_NONE("attacked", value_count, session_notices, attacked_ms),
    REPLY_FIELD_OR_NONE("recovered", value_count, session_notices, recovered_ms),
};

static bool notices_parse(const struct redis_reply *reply, struct session_notices *ret)
{
    const struct redis_reply *browsers = reply_named(reply, TEXT("browsers"));

    *ret = (struct session_notices){0};
    if (!browsers || browsers->count > NOTICES_BROWSERS_MAX || !REPLY_RECORD(reply, NOTICE_FIELDS, ret))
        return false;
    for (; ret->browser_count < browsers->count; ret->browser_count++)
        if (!REPLY_RECORD(reply_at(browsers, ret->browser_count), BROWSER_FIELDS, &ret->browsers[ret->browser_count]))
            return false;
    return true;
}

static bool reads_session(const struct redis_reply *reply, struct session_record *ret_session,
                          struct session_notices *ret_notices, struct stored_seal *ret_stored)
{
    const struct redis_reply *attacked = reply_at(reply, 2);

    *ret_stored = (struct stored_seal){0};
    if (attacked)
        ret_session->notices = ret_notices;
    return REPLY_RECORD(reply_at(reply, 0), SESSION_FIELDS, ret_session) &&
           REPLY_RECORD(reply_at(reply, 0), SEAL_FIELDS, ret_stored) &&
           user_record_read(reply_at(reply, 1), false, &ret_session->user) &&
           (!attacked || (value_count(attacked, &ret_session->attacked_ms, sizeof(int64_t)) &&
                          notices_parse(reply_at(reply, 3), ret_notices)));
}

static void session_answer(struct session_call *call, enum store_result result)
{
    bool has_session = result == STORE_OK || result == STORE_REFUSED || result == STORE_CONFLICT;

    call->done(call->arg, result, has_session ? &call->session : NULL);
    free(call->creation);
    free(call);
}

static void session_settled(void *arg, bool is_over)
{
    session_answer(arg, is_over ? STORE_OK : STORE_UNKNOWN);
}

static void session_settle(struct session_call *call)
{
    barriers_settle(lease_barriers(store_lease(call->store)), session_settled, call);
}

/* NULL: the sign-in came with no session, or with one whose end is up to session_create.lua. */
static struct store *presented_elsewhere(const struct session_call *call)
{
    struct store *store = call->creation->presented_at;

    return store == call->store ? NULL : store;
}

static void presented_ended(void *arg, enum store_result result)
{
    struct session_call *call = arg;

    if (result == STORE_OK || result == STORE_NOT_FOUND)
        session_settle(call);
    else
        session_answer(call, STORE_UNKNOWN);
}

static void creation_finish(struct session_call *call)
{
    const struct session_creation *creation = call->creation;
    struct store *elsewhere = presented_elsewhere(call);

    throttle_succeed(creation->partitions, &creation->start.attempt);
    if (elsewhere)
        session_store_end(elsewhere, creation->start.presented_digest, &creation->source, presented_ended, call);
    else
        session_settle(call);
}

static void session_finish(struct session_call *call, enum store_result result)
{
    if (result == STORE_OK && call->creation)
        creation_finish(call);
    else if (result == STORE_OK && call->is_change)
        session_settle(call);
    else
        session_answer(call, result);
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

/* Creating one: no limit may have been reached since the attempt began; then the script in the account's partition
 * decides; then the session that the sign-in came with ends, wherever it is. That session must not live on unseen. So
 * if its partition is not served, the sign-in is refused before anything is made. If its partition is lost in between,
 * the answer is 503, and the new session, whose token nobody gets, expires. */

static void creation_checked(void *arg, enum store_result result, const struct throttle_verdict *verdict);
static void presented_found(void *arg, enum store_result result, unsigned bucket);

void session_store_create(const struct partitions *partitions, const struct session_start *start,
                          const struct session_limits *limits, const struct audit_source *source, session_found *done,
                          void *arg)
{
    struct session_call *call = mem_alloc(sizeof *call);
    struct session_creation *creation = mem_alloc(sizeof *creation);

    *creation =
        (struct session_creation){.partitions = partitions, .start = *start, .limits = *limits, .source = *source};
    *call = (struct session_call){.store = partition_of_account(partitions, &start->account),
                                  .is_change = true,
                                  .done = done,
                                  .arg = arg,
                                  .creation = creation};
    memcpy(call->digest, start->token_digest, sizeof call->digest);
    if (start->presented_digest)
        creation->presented_at = partition_of_digest(partitions, start->presented_digest);
    throttle_judge(partitions, &start->attempt, THROTTLE_CHECK, creation_checked, call);
}

static void creation_seal(struct session_call *call, struct record_mac *ret_mac)
{
    const struct session_start *start = &call->creation->start;
    struct session_record *session = &call->session;
    struct session_seal seal;

    snprintf(session->sid, sizeof session->sid, "%s", start->sid);
    session->user.id = start->user;
    session->user.account = start->account;
    session->created_ms = store_clock_ms(call->store);
    session->ends_ms = session->created_ms + call->creation->limits.absolute_ms;
    session_seal_fill(&seal, call->digest, session, 0);
    record_mac_make(store_keyring(call->store), &seal.record, ret_mac);
}

static void creation_send(void *arg)
{
    struct session_call *call = arg;
    const struct session_creation *creation = call->creation;
    const struct session_start *start = &creation->start;
    const struct user_record *verified = start->verified;
    struct record_mac mac;
    struct script_args args;

    creation_seal(call, &mac);
    args_begin(&args);
    args_add(&args, id_text(&start->user));
    args_add_int(&args, start->totp_step);
    args_add_hex(&args, start->token_digest, TOKEN_DIGEST_BYTES);
    args_add(&args, text_of(start->sid));
    args_add(&args, start->attempt.id);
    args_add(&args, throttle_counters_at_home(&start->attempt));
    args_add(&args, start->browser_digest);
    args_add_hex(&args, presented_elsewhere(call) ? NULL : start->presented_digest, TOKEN_DIGEST_BYTES);
    args_add_limits(&args, &creation->limits);
    args_add(&args, verified ? text_of(verified->password_hash) : TEXT(""));
    args_add(&args, verified ? totp_text(verified->totp_sealed) : TEXT(""));
    args_add_client(&args, call->store, &creation->source);
    args_add_int(&args, call->session.created_ms);
    args_add(&args, text_of(mac.text));
    args_add(&args, start->browser ? text_of(start->browser) : TEXT(""));
    store_call_script(call->store, SCRIPT_session_create, SCRIPT_CHANGES, args.count, args.argv, session_called, call);
}

static void creation_begin(struct session_call *call)
{
    const struct store *elsewhere = presented_elsewhere(call);

    if (elsewhere && !store_is_ready(elsewhere))
        store_refuse(call->store, session_called, call);
    else
        store_know_clock(call->store, creation_send, call);
}

static void creation_checked(void *arg, enum store_result result, const struct throttle_verdict *verdict)
{
    struct session_call *call = arg;
    const struct session_creation *creation = call->creation;

    call->session.retry_after_s = verdict->retry_after_s;
    if (result != STORE_OK)
        session_answer(call, result);
    else if (creation->presented_at && store_has_aliases(creation->presented_at))
        alias_find(creation->presented_at, creation->start.presented_digest, presented_found, call);
    else
        creation_begin(call);
}

/* A session from before sessions were drawn into the partition of their account. */
static void presented_found(void *arg, enum store_result result, unsigned bucket)
{
    struct session_call *call = arg;

    if (result == STORE_OK)
        call->creation->presented_at = partition_of_bucket(call->creation->partitions, bucket);
    if (result == STORE_OK || result == STORE_NOT_FOUND)
        creation_begin(call);
    else
        session_answer(call, result);
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

static void notices_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct session_notices notices;

    if (result == STORE_OK)
        result = reply_checked(asked->store, notices_parse(reply_at(reply, 0), &notices), "notices");
    ((notices_read *)asked->done)(asked->arg, result, result == STORE_OK ? &notices : NULL);
}

void session_store_read_notices(struct store *store, const struct id *user, const uint8_t token_digest[32],
                                notices_read *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(user));
    args_add_hex(&args, token_digest, TOKEN_DIGEST_BYTES);
    verb_ask(store, SCRIPT_session_notices, SCRIPT_READS, &args, notices_answer, (verb_done *)done, arg);
}

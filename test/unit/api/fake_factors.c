/* Password changes, authenticators, recovery codes and lists of sessions, which answer as fake_world.h says. */
#include "fake_world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct factor_call {
    password_rehashed *rehashed;
    session_found *begun;
    totp_waits *found;
    store_done *done;
    recovery_begun *recovery;
    recovery_codes_left *left;
    notices_read *notices;
    sessions_listed *listed;
    sessions_stopped *stopped;
    void *arg;
};

static void call_later(void (*run)(void *arg), struct factor_call call)
{
    struct factor_call *kept = malloc(sizeof *kept);

    cr_assert(kept);
    *kept = call;
    world_later(run, kept);
}

static struct factor_call take(void *arg)
{
    struct factor_call call = *(struct factor_call *)arg;

    free(arg);
    return call;
}

static void run_rehashed(void *arg)
{
    struct factor_call call = take(arg);

    call.rehashed(call.arg, world.rehash_fails ? NULL : "scrypt-id$new");
}

void password_rehash(struct password_pool *pool, const struct password_turn *turn, struct text password,
                     struct text user, password_rehashed *done, void *arg)
{
    (void)pool;
    cr_assert_eq(turn->part, PASSWORD_KNOWN);
    cr_assert(text_equal(user, id_text(&world.session.user.id)));
    world.rehashes++;
    world.password_bytes = password.len;
    call_later(run_rehashed, (struct factor_call){.rehashed = done, .arg = arg});
}

static void expect_proof(const struct session_proof *proof)
{
    cr_assert(id_equal(&proof->session->user.id, &world.session.user.id));
    cr_assert(proof->totp_step > 0 && proof->attempt.id.len > 0 && proof->limits == &world.service.session_limits);
}

void session_store_change_password(struct store *store, const struct session_proof *proof, const uint8_t new_digest[32],
                                   const char *verified_hash, const char *new_hash, const struct audit_source *source,
                                   session_found *done, void *arg)
{
    (void)store;
    expect_proof(proof);
    cr_assert_str_eq(verified_hash, world.session.user.password_hash);
    cr_assert_str_eq(new_hash, "scrypt-id$new");
    cr_assert(memcmp(proof->digest, new_digest, 32) != 0 && source->actor.len > 0);
    world_expect_bucket(new_digest, &world.session.user.account);
    world.password_changes++;
    world_create_later(done, arg);
}

static void run_begun(void *arg)
{
    struct factor_call call = take(arg);
    bool is_refused = world.totp_begin_result == STORE_REFUSED || world.totp_begin_result == STORE_CONFLICT;

    world.session.retry_after_s = world.retry_after_s;
    call.begun(call.arg, world.totp_begin_result, is_refused ? &world.session : NULL);
}

void factor_store_begin_totp(struct store *store, const struct session_proof *proof, const struct sealed_totp *totp,
                             session_found *done, void *arg)
{
    (void)store;
    expect_proof(proof);
    world.totp_begins++;
    world.waiting.totp = *totp;
    world.waiting.user = world.session.user;
    call_later(run_begun, (struct factor_call){.begun = done, .arg = arg});
}

static void run_found(void *arg)
{
    struct factor_call call = take(arg);

    call.found(call.arg, world.waiting_result, world.waiting_result == STORE_OK ? &world.waiting : NULL);
}

void factor_store_find_totp(struct store *store, const struct session_record *session, totp_waits *done, void *arg)
{
    (void)store;
    cr_assert_str_eq(session->sid, world.session.sid);
    call_later(run_found, (struct factor_call){.found = done, .arg = arg});
}

void factor_store_find_recovery(const struct partitions *partitions, const struct token_digests *ticket,
                                totp_waits *done, void *arg)
{
    (void)partitions;
    cr_assert_eq(ticket->count, 1);
    call_later(run_found, (struct factor_call){.found = done, .arg = arg});
}

static void run_confirmed(void *arg)
{
    struct factor_call call = take(arg);

    call.done(call.arg, world.confirm_result);
}

void factor_store_confirm_totp(struct store *store, const struct waiting_totp *waiting, int64_t step,
                               const uint8_t *session, const struct audit_source *source, store_done *done, void *arg)
{
    (void)store;
    cr_assert(id_equal(&waiting->user.id, &world.session.user.id) && step > 0);
    cr_assert_eq(source->credential.kind, session ? CREDENTIAL_SESSION : CREDENTIAL_NONE);
    world.confirms++;
    world.confirmed_by_session = session != NULL;
    call_later(run_confirmed, (struct factor_call){.done = done, .arg = arg});
}

static void run_recovery(void *arg)
{
    struct factor_call call = take(arg);

    call.recovery(call.arg, world.recovery_result, world.retry_after_s);
}

void factor_store_begin_recovery(const struct partitions *partitions, const struct recovery_start *start,
                                 recovery_begun *done, void *arg)
{
    (void)partitions;
    cr_assert(start->code->count == 1 && start->attempt.id.len > 0);
    world_expect_bucket(start->ticket, &start->user->account);
    world.recoveries++;
    world.waiting.totp = *start->totp;
    world.waiting.user = *start->user;
    call_later(run_recovery, (struct factor_call){.recovery = done, .arg = arg});
}

static void run_codes_set(void *arg)
{
    struct factor_call call = take(arg);

    call.done(call.arg, world.codes_result);
}

void factor_store_set_recovery_codes(struct store *store, const struct id *account,
                                     const uint8_t (*digests)[KEYRING_DIGEST_BYTES], const struct audit_source *source,
                                     store_done *done, void *arg)
{
    (void)store;
    cr_assert(id_equal(account, &world.session.user.account));
    cr_assert(source->credential.kind == CREDENTIAL_SESSION && source->credential.needs_step_up);
    for (size_t i = 1; i < RECOVERY_CODES; i++)
        cr_assert(memcmp(digests[i - 1], digests[i], KEYRING_DIGEST_BYTES) != 0);
    call_later(run_codes_set, (struct factor_call){.done = done, .arg = arg});
}

static void run_left(void *arg)
{
    struct factor_call call = take(arg);

    call.left(call.arg, world.codes_result, 7, 1000);
}

void factor_store_count_recovery_codes(struct store *store, const struct id *user, recovery_codes_left *done, void *arg)
{
    (void)store;
    cr_assert(id_equal(user, &world.session.user.id));
    call_later(run_left, (struct factor_call){.left = done, .arg = arg});
}

static void run_notices(void *arg)
{
    struct factor_call call = take(arg);

    call.notices(call.arg, world.list_result, world.list_result == STORE_OK ? &world.notices : NULL);
}

void session_store_read_notices(struct store *store, const struct id *user, const uint8_t token_digest[32],
                                notices_read *done, void *arg)
{
    (void)store;
    (void)token_digest;
    cr_assert(id_equal(user, &world.session.user.id));
    call_later(run_notices, (struct factor_call){.notices = done, .arg = arg});
}

static void run_listed(void *arg)
{
    struct factor_call call = take(arg);

    call.listed(call.arg, world.list_result, world.sessions, world.session_count);
}

void session_store_list(struct store *store, const struct id *users, size_t user_count, sessions_listed *done,
                        void *arg)
{
    (void)store;
    cr_assert(user_count == 1 && id_equal(users, &world.session.user.id));
    call_later(run_listed, (struct factor_call){.listed = done, .arg = arg});
}

static void run_stopped(void *arg)
{
    struct factor_call call = take(arg);

    call.stopped(call.arg, world.stop_result, 2);
}

void session_store_stop(struct store *store, const struct id *user, struct text sid, const uint8_t *except,
                        const struct audit_source *source, sessions_stopped *done, void *arg)
{
    (void)store;
    cr_assert(id_equal(user, &world.session.user.id) && source->credential.kind == CREDENTIAL_SESSION);
    snprintf(world.stopped, sizeof world.stopped, "%.*s", TEXT_ARG(sid));
    world.keeps_session = except != NULL;
    world.needs_step_up = source->credential.needs_step_up;
    call_later(run_stopped, (struct factor_call){.stopped = done, .arg = arg});
}

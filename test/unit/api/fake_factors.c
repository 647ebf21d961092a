/* Password changes, authenticators, recovery codes and lists of sessions, which answer as fake_world.h says. */
#include "fake_world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

COMPLETION(run_rehashed, password_rehashed, world.rehash_fails ? NULL : "scrypt-id$new")

void password_rehash(struct password_pool *pool, const struct password_turn *turn, struct text password,
                     struct text user, password_rehashed *done, void *arg)
{
    cr_assert_eq(turn->part, PASSWORD_KNOWN);
    cr_assert(text_equal(user, id_text(&world.session.user.id)));
    world.rehashes++;
    world.password_bytes = password.len;
    ANSWER_LATER(run_rehashed, done, arg);
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
    expect_proof(proof);
    cr_assert_str_eq(verified_hash, world.session.user.password_hash);
    cr_assert_str_eq(new_hash, "scrypt-id$new");
    cr_assert(memcmp(proof->digest, new_digest, 32) != 0 && source->actor.len > 0);
    world_expect_bucket(new_digest, &world.session.user.account);
    world.password_changes++;
    world_create_later(done, arg);
}

COMPLETION(run_begun, session_found, world.totp_begin_result,
           world.totp_begin_result == STORE_REFUSED || world.totp_begin_result == STORE_CONFLICT
               ? world_refused_session()
               : NULL)

void factor_store_begin_totp(struct store *store, const struct session_proof *proof, const struct sealed_totp *totp,
                             session_found *done, void *arg)
{
    expect_proof(proof);
    world.totp_begins++;
    world.waiting.totp = *totp;
    world.waiting.user = world.session.user;
    ANSWER_LATER(run_begun, done, arg);
}

COMPLETION(run_found, totp_waits, world.waiting_result, world.waiting_result == STORE_OK ? &world.waiting : NULL)

void factor_store_find_totp(struct store *store, const struct session_record *session, totp_waits *done, void *arg)
{
    cr_assert_str_eq(session->sid, world.session.sid);
    ANSWER_LATER(run_found, done, arg);
}

void factor_store_find_recovery(const struct partitions *partitions, const struct token_digests *ticket,
                                totp_waits *done, void *arg)
{
    cr_assert_eq(ticket->count, 1);
    ANSWER_LATER(run_found, done, arg);
}

COMPLETION(run_confirmed, store_done, world.confirm_result)

void factor_store_confirm_totp(struct store *store, const struct waiting_totp *waiting, int64_t step,
                               const uint8_t *session, const struct audit_source *source, store_done *done, void *arg)
{
    cr_assert(id_equal(&waiting->user.id, &world.session.user.id) && step > 0);
    cr_assert_eq(source->credential.kind, session ? CREDENTIAL_SESSION : CREDENTIAL_NONE);
    world.confirms++;
    world.confirmed_by_session = session != NULL;
    ANSWER_LATER(run_confirmed, done, arg);
}

COMPLETION(run_recovery, store_limited, world.recovery_result, world.retry_after_s)

void factor_store_begin_recovery(const struct partitions *partitions, const struct recovery_start *start,
                                 store_limited *done, void *arg)
{
    cr_assert(start->code->count == 1 && start->attempt.id.len > 0);
    world_expect_bucket(start->ticket, &start->user->account);
    world.recoveries++;
    world.waiting.totp = *start->totp;
    world.waiting.user = *start->user;
    ANSWER_LATER(run_recovery, done, arg);
}

COMPLETION(run_codes_set, store_done, world.codes_result)

void factor_store_set_recovery_codes(struct store *store, const struct id *account,
                                     const uint8_t (*digests)[KEYRING_DIGEST_BYTES], const struct audit_source *source,
                                     store_done *done, void *arg)
{
    cr_assert(id_equal(account, &world.session.user.account));
    cr_assert(source->credential.kind == CREDENTIAL_SESSION && source->credential.needs_step_up);
    for (size_t i = 1; i < RECOVERY_CODES; i++)
        cr_assert(memcmp(digests[i - 1], digests[i], KEYRING_DIGEST_BYTES) != 0);
    ANSWER_LATER(run_codes_set, done, arg);
}

COMPLETION(run_left, recovery_codes_left, world.codes_result, 7, 1000)

void factor_store_count_recovery_codes(struct store *store, const struct id *user, recovery_codes_left *done, void *arg)
{
    cr_assert(id_equal(user, &world.session.user.id));
    ANSWER_LATER(run_left, done, arg);
}

COMPLETION(run_notices, notices_read, world.list_result, world.list_result == STORE_OK ? &world.notices : NULL)

void session_store_read_notices(struct store *store, const struct id *user, const uint8_t token_digest[32],
                                notices_read *done, void *arg)
{
    cr_assert(id_equal(user, &world.session.user.id));
    ANSWER_LATER(run_notices, done, arg);
}

COMPLETION(run_listed, sessions_listed, world.list_result, world.sessions, world.session_count)

void session_store_list(struct store *store, const struct id *users, size_t user_count, sessions_listed *done,
                        void *arg)
{
    cr_assert(user_count == 1 && id_equal(users, &world.session.user.id));
    ANSWER_LATER(run_listed, done, arg);
}

COMPLETION(run_stopped, store_counted, world.stop_result, 2)

void session_store_stop(struct store *store, const struct id *user, struct text sid, const uint8_t *except,
                        const struct audit_source *source, store_counted *done, void *arg)
{
    cr_assert(id_equal(user, &world.session.user.id) && source->credential.kind == CREDENTIAL_SESSION);
    snprintf(world.stopped, sizeof world.stopped, "%.*s", TEXT_ARG(sid));
    world.keeps_session = except != NULL;
    world.needs_step_up = source->credential.needs_step_up;
    ANSWER_LATER(run_stopped, done, arg);
}

#include "proof_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/secure.h"

static void password_checked(void *arg, enum password_result result);

bool proof_code_has_form(struct text totp)
{
    if (totp.len != TOTP_DIGITS)
        return false;
    for (size_t i = 0; i < totp.len; i++)
        if (totp.ptr[i] < '0' || totp.ptr[i] > '9')
            return false;
    return true;
}

static void user_wipe(void *user)
{
    secure_wipe(user, sizeof(struct user_record));
}

/* One that is bound to nobody might have been another user's. An earlier version made such. */
static const char *usable_hash(const struct proof *proof)
{
    const char *hash = proof->user.password_hash;
    bool is_usable = password_hash_is_bound(hash) || store_takes_unsealed(proof->exchange->service->store);

    return is_usable ? hash : NULL;
}

void proof_begin(struct proof *proof, const struct user_record *user, const struct password_turn *turn,
                 void (*done)(void *arg, enum proof_result result), void *arg)
{
    struct text password = proof->password;
    const char *hash = NULL;

    proof->begun_ms = clock_wall_ms();
    proof->done = done;
    proof->arg = arg;
    if (user) {
        proof->known = true;
        proof->user = *user;
        http_request_defer(proof->exchange->request, user_wipe, &proof->user);
        hash = usable_hash(proof);
    }
    /* Nobody has such a password; it costs what others cost. */
    if (password.len > PASSWORD_MAX_BYTES) {
        password.len = PASSWORD_MAX_BYTES;
        hash = NULL;
    }
    password_verify(proof->exchange->service->passwords, turn, password, id_text(&proof->user.id), hash,
                    password_checked, proof);
}

static bool code_is_right(struct proof *proof)
{
    struct totp_secret secret = {0};
    bool opened = keyring_open(proof->exchange->service->keyring, id_text(&proof->user.id), proof->user.totp_sealed,
                               sizeof proof->user.totp_sealed, secret.bytes);
    bool matches = totp_verify(&secret, proof->totp, proof->begun_ms, &proof->totp_step);

    secure_wipe(&secret, sizeof secret);
    return opened && matches;
}

static void password_checked(void *arg, enum password_result result)
{
    struct proof *proof = arg;
    bool code_right;

    if (result == PASSWORD_OVERLOADED || result == PASSWORD_CANCELLED) {
        proof->done(proof->arg, result == PASSWORD_OVERLOADED ? PROOF_OVERLOADED : PROOF_CANCELLED);
        return;
    }
    code_right = code_is_right(proof); /* looked at behind a wrong password too */
    if (result != PASSWORD_MATCHES)
        proof->done(proof->arg, PROOF_WRONG);
    else
        proof->done(proof->arg, code_right ? PROOF_RIGHT : PROOF_WRONG_CODE);
}

void proof_refuse(struct proof *proof, enum proof_result result)
{
    struct problem problem = problem_of(result == PROOF_OVERLOADED ? PROBLEM_OVERLOADED : PROBLEM_SHUTTING_DOWN);

    if (result == PROOF_OVERLOADED)
        problem.retry_after_s = password_pool_retry_after_s(proof->exchange->service->passwords);
    exchange_refuse_with(proof->exchange, problem);
}

static void warn_of(const struct proof *proof, const char *message)
{
    LOG(LOG_WARN, message, log_text("request_id", http_request_id(proof->exchange->request)),
        log_text("user", id_text(&proof->user.id)), log_text("account", id_text(&proof->user.account)),
        log_text("ip", exchange_client_address(proof->exchange)));
}

void proof_tell_failure(const struct proof *proof, const struct login_failure *failure)
{
    if (failure->closes && proof->known) {
        metric_count_user(METRIC_USER_ATTACKED, proof->user.id.text);
        warn_of(proof, "sign-in closed to unknown browsers: 30 wrong attempts within an hour");
    }
    if (failure->locks) {
        metric_count_user(METRIC_USER_LOCKED, proof->user.id.text);
        warn_of(proof, "user locked: 100 wrong codes behind a right password; see 'chatelaine user unlock'");
    }
}

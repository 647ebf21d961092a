#include "proof_internal.h"
#include "base/clock.h"
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

void proof_begin(struct proof *proof, const struct user_record *user, void (*done)(void *arg, enum proof_result result),
                 void *arg)
{
    struct text password = proof->password;
    const char *hash = NULL;

    proof->begun_ms = clock_wall_ms();
    proof->done = done;
    proof->arg = arg;
    if (user) {
        proof->known = true;
        proof->user = *user;
        http_request_defer(proof->call->request, user_wipe, &proof->user);
        hash = proof->user.password_hash;
    }
    /* Nobody has such a password; it costs what others cost. */
    if (password.len > PASSWORD_MAX_BYTES) {
        password.len = PASSWORD_MAX_BYTES;
        hash = NULL;
    }
    password_verify(proof->call->service->passwords, password, hash, password_checked, proof);
}

static bool code_is_right(struct proof *proof)
{
    struct totp_secret secret = {0};
    bool opened = keyring_open(proof->call->service->keyring, id_text(&proof->user.id), proof->user.totp_sealed,
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
    proof->done(proof->arg, result == PASSWORD_MATCHES && code_right ? PROOF_RIGHT : PROOF_WRONG);
}

void proof_refuse(struct proof *proof, enum proof_result result)
{
    call_refuse(proof->call, result == PROOF_OVERLOADED ? PROBLEM_OVERLOADED : PROBLEM_SHUTTING_DOWN);
}

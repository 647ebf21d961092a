#include "user_check_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "exchange_client_internal.h"
#include "exchange_log_internal.h"

static void password_checked(void *arg, enum password_result result);

bool user_check_read_code(struct exchange *exchange, struct text totp)
{
    bool has_form = totp.len == TOTP_DIGITS;

    for (size_t i = 0; i < totp.len; i++)
        has_form = has_form && totp.ptr[i] >= '0' && totp.ptr[i] <= '9';
    if (!has_form)
        exchange_refuse_member(exchange, "totp");
    return has_form;
}

static void user_wipe(void *user)
{
    secure_wipe(user, sizeof(struct user_record));
}

/* NULL for a hash that is not bound to its user, because it might be another user's. Only an earlier version made
 * those. */
static const char *usable_hash(const struct user_check *check)
{
    const struct partitions *partitions = check->exchange->service->partitions;
    const char *hash = check->user.password_hash;
    bool is_usable =
        password_hash_is_bound(hash) || store_takes_unsealed(partition_of_account(partitions, &check->user.account));

    return is_usable ? hash : NULL;
}

void user_check_know(struct user_check *check, const struct user_record *user)
{
    check->known = true;
    check->user = *user;
    http_request_defer(check->exchange->request, user_wipe, &check->user);
}

void user_check_begin(struct user_check *check, const struct user_record *user, const struct password_turn *turn,
                      void (*done)(void *arg, enum user_check_result result), void *arg)
{
    struct text password = check->password;
    const char *hash = NULL;

    check->begun_ms = clock_wall_ms();
    check->done = done;
    check->arg = arg;
    if (user) {
        user_check_know(check, user);
        hash = usable_hash(check);
    }
    /* Nobody has such a long password, but checking it must cost as much as any other. */
    if (password.len > PASSWORD_MAX_BYTES) {
        password.len = PASSWORD_MAX_BYTES;
        hash = NULL;
    }
    password_verify(check->exchange->service->passwords, turn, password, id_text(&check->user.id), hash,
                    password_checked, check);
}

static bool code_is_right(struct user_check *check)
{
    if (check->by_recovery_code)
        return check->known && check->recovery_code_fits;

    struct totp_secret secret = {0};
    bool opened = keyring_open(check->exchange->service->keyring, id_text(&check->user.id), check->user.totp_sealed,
                               sizeof check->user.totp_sealed, secret.bytes);
    bool matches = totp_verify(&secret, check->totp, check->begun_ms, &check->totp_step);

    secure_wipe(&secret, sizeof secret);
    return opened && matches;
}

static void password_checked(void *arg, enum password_result result)
{
    struct user_check *check = arg;
    bool code_right;

    if (result == PASSWORD_OVERLOADED || result == PASSWORD_CANCELLED) {
        check->done(check->arg, result == PASSWORD_OVERLOADED ? USER_CHECK_OVERLOADED : USER_CHECK_CANCELLED);
        return;
    }
    code_right = code_is_right(check); /* checked after a wrong password too */
    if (result != PASSWORD_MATCHES)
        check->done(check->arg, USER_CHECK_WRONG);
    else
        check->done(check->arg, code_right ? USER_CHECK_RIGHT : USER_CHECK_WRONG_CODE);
}

void user_check_refuse(struct exchange *exchange, bool is_ending)
{
    uint32_t retry_after_s = is_ending ? 0 : password_pool_retry_after_s(exchange->service->passwords);

    exchange_refuse_with(exchange, (struct problem){.code = is_ending ? PROBLEM_SHUTTING_DOWN : PROBLEM_OVERLOADED,
                                                    .retry_after_s = retry_after_s});
}

static void warn_of(const struct user_check *check, const char *message)
{
    LOG(LOG_WARN, message, LOG_REQUEST(check->exchange), log_text("user", id_text(&check->user.id)),
        log_text("account", id_text(&check->user.account)), log_text("ip", exchange_client_address(check->exchange)));
}

void user_check_report_failure(const struct user_check *check, const struct login_failure *failure)
{
    if (failure->closes && check->known) {
        metric_count_user(METRIC_USER_ATTACKED, check->user.id.text);
        warn_of(check, "sign-in closed to unknown browsers: 30 wrong attempts within an hour");
    }
    if (failure->locks) {
        metric_count_user(METRIC_USER_LOCKED, check->user.id.text);
        warn_of(check, "user locked: 100 wrong codes with the right password; run 'chatelaine user reset-password'");
    }
}

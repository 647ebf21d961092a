#include "auth/key_check.h"
#include "base/check.h"
#include "base/mem.h"
#include "core/secret.h"
#include "store/key_store.h"

#include <stdlib.h>

struct key_checker {
    struct keyring *keyring;
    struct store *store;
};

struct key_checker *key_checker_create(struct keyring *keyring, struct store *store)
{
    struct key_checker *checker = mem_alloc(sizeof *checker);
    *checker = (struct key_checker){keyring, store};
    return checker;
}

void key_checker_destroy(struct key_checker *checker)
{
    free(checker);
}

static void record_found(void *arg, enum store_result result, const struct key_record *key);

/* Under the master key of check->generation. What is remembered of a digest would be asked here, before the store. */
static void look_up(struct key_check *check)
{
    uint8_t digest[KEY_DIGEST_BYTES];
    keyring_digest(check->checker->keyring, KEYRING_KEY_DIGEST, check->generation, check->token, digest);
    key_store_find(check->checker->store, digest, record_found, check);
}

bool key_check_begin(struct key_checker *checker, struct key_check *check, struct text token, key_checked *done,
                     void *arg, enum key_check_result *ret_result, const struct key_record **ret_key)
{
    enum key_kind kind;
    enum key_mode mode;
    if (!secret_parse(token, &kind, &mode)) {
        *ret_result = KEY_CHECK_INVALID;
        *ret_key = NULL;
        return true;
    }
    *check = (struct key_check){.checker = checker, .done = done, .arg = arg, .token = token};
    look_up(check);
    return false;
}

static enum key_check_result judge(enum store_result result, const struct key_record *key)
{
    switch (result) {
    case STORE_OK:
        return key->revoked_ms ? KEY_CHECK_REVOKED : KEY_CHECK_ACCEPTED;
    case STORE_NOT_FOUND:
        return KEY_CHECK_INVALID;
    case STORE_CONFLICT:
    case STORE_REFUSED:
    case STORE_UNAVAILABLE:
    case STORE_UNKNOWN:
        break;
    }
    return KEY_CHECK_UNAVAILABLE;
}

/* An unknown digest may be known under an older master key. */
static void record_found(void *arg, enum store_result result, const struct key_record *key)
{
    struct key_check *check = arg;
    if (result == STORE_NOT_FOUND && check->generation + 1 < keyring_generations(check->checker->keyring)) {
        check->generation++;
        look_up(check);
        return;
    }
    check->done(check->arg, judge(result, key), result == STORE_OK ? key : NULL);
}

void key_checker_digest(struct key_checker *checker, struct text secret, uint8_t ret_digest[KEY_DIGEST_BYTES])
{
    keyring_digest(checker->keyring, KEYRING_KEY_DIGEST, 0, secret, ret_digest);
}

enum problem_code key_check_problem(enum key_check_result result, const struct key_record *key)
{
    switch (result) {
    case KEY_CHECK_ACCEPTED:
        return PROBLEM_NONE;
    case KEY_CHECK_INVALID:
        return PROBLEM_INVALID_API_KEY;
    case KEY_CHECK_REVOKED:
        return key->kind == KEY_DEVICE ? PROBLEM_DEVICE_KEY_REVOKED : PROBLEM_API_KEY_REVOKED;
    case KEY_CHECK_UNAVAILABLE:
        return PROBLEM_STORE_UNAVAILABLE;
    }
    UNREACHABLE();
}

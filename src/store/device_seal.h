/* Shared by both sides of an enrolment: the MACs that bind its parts, first when it is begun and again when it is
 * approved, and how it is marked. The two kinds of MAC differ, so a begun enrolment never passes for an approved one.
 */
#pragma once
#include "core/key.h"
#include "verb_internal.h"

enum { SEAL_PARTS_MAX = 6, SCOPES_TEXT_BYTES = 12 };

/* Points into itself: never copy it. */
struct seal {
    struct record_parts record;
    struct text parts[SEAL_PARTS_MAX];
    char scopes[SCOPES_TEXT_BYTES];
};

/* What a device asks for. */
struct device_wish {
    const uint8_t *code_digest; /* KEYRING_DIGEST_BYTES, of the device code */
    struct text client, name;
    scope_set scopes;
};

/* The texts must outlive the seal. */
void seal_enrolment(struct seal *seal, const struct device_wish *wish,
                    const uint8_t user_code_digest[KEYRING_DIGEST_BYTES]);
void seal_approval(struct seal *seal, const struct device_wish *wish, const struct id *account, const struct id *user);

MUST_CHECK bool reply_scopes(const struct redis_reply *reply, scope_set *ret_scopes);
/* The index of the word among count others, or count. */
size_t reply_word(const struct redis_reply *reply, const char *const *words, size_t count);

/* What an account's partition has decided about an enrolment. */
struct device_mark {
    const char *status;         /* as device_mark.lua takes it */
    const uint8_t *code_digest; /* KEYRING_DIGEST_BYTES, of the device code */
    const struct id *account, *user;
    struct text mac; /* of an approval; empty for a denial */
};
/* STORE_NOT_FOUND: the enrolment is over, or another account's. */
void device_mark(struct store *store, const struct device_mark *mark, store_done *done, void *arg);

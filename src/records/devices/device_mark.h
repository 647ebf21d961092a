/* Shared by both sides of an enrolment: how its replies are read, and how it is marked. */
#pragma once
#include "core/device_seal.h"
#include "engine/verb.h"

MUST_CHECK bool reply_scopes(const struct redis_reply *reply, scope_set *ret_scopes);

/* What an account's partition has decided about an enrolment. */
struct device_mark {
    const char *status;         /* as device_mark.lua takes it */
    const uint8_t *code_digest; /* KEYRING_DIGEST_BYTES, of the device code */
    const struct id *account, *user;
    struct text mac; /* of an approval; empty for a denial */
};
/* STORE_NOT_FOUND: the enrolment is over, or another account's. */
void device_mark(struct store *store, const struct device_mark *mark, store_done *done, void *arg);

/* Which records of Redis are believed. */
#include "base/check.h"
#include "base/metrics.h"
#include "core/key.h"
#include "store_state.h"

struct keyring *store_keyring(const struct store *store)
{
    CHECK(store->settings.keyring);
    return store->settings.keyring;
}

static bool accepts(struct store *store, enum record_seal seal, const char *what, struct text id)
{
    if (seal == RECORD_SEALED || seal == RECORD_UNSEALED)
        return true;
    metric_add(METRIC_RECORDS_ALTERED, 1);
    if (store_may_log(store, &store->altered_pause))
        LOG(LOG_ERROR, "altered in Redis: a record has not the MAC that it was written with; it is refused",
            log_str("record", what), log_text("id", id), log_int("suppressed", store->altered_pause.suppressed));
    return false;
}

bool store_accepts(struct store *store, const struct record_parts *record, struct text mac, const char *what,
                   struct text id)
{
    struct keyring *keyring = store->settings.keyring;

    return !keyring || accepts(store, record_mac_judge(keyring, record, mac, NULL), what, id);
}

bool store_accepts_key(struct store *store, struct text packed, const uint8_t *digest, const struct id *id)
{
    struct keyring *keyring = store->settings.keyring;

    return !keyring || accepts(store, key_judge(packed, keyring, digest), "key", id_text(id));
}

#include "ticket_keys.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/secure.h"

#include <stdlib.h>
#include <string.h>

enum {
    HOUR_MS = TLS_TICKET_LIFETIME_S * 1000,
    HOURS = 3, /* the current one first, then the one before, then the next */
    LABEL_MAX_BYTES = 64,
};

struct ticket_keys {
    struct keyring *keyring;
    int64_t hour; /* that the keys were derived for */
    struct tls_ticket_key keys[KEYRING_MAX_GENERATIONS][HOURS];
};

struct ticket_keys *ticket_keys_create(struct keyring *keyring)
{
    struct ticket_keys *keys = mem_alloc(sizeof *keys);

    keys->keyring = keyring;
    keys->hour = -1;
    return keys;
}

void ticket_keys_destroy(struct ticket_keys *keys)
{
    if (!keys)
        return;
    secure_wipe(keys, sizeof *keys);
    free(keys);
}

static void derive(const struct ticket_keys *keys, size_t generation, int64_t hour, const char *part,
                   uint8_t *ret_bytes, size_t bytes)
{
    uint8_t digest[KEYRING_DIGEST_BYTES];
    struct buf label = BUF_FIXED(LABEL_MAX_BYTES);

    CHECK(bytes <= sizeof digest);
    buf_printf(&label, "%s %lld", part, (long long)hour);
    keyring_digest(keys->keyring, KEYRING_TICKET, generation, buf_text(&label), digest);
    memcpy(ret_bytes, digest, bytes);
    secure_wipe(digest, sizeof digest);
}

static void derive_all(struct ticket_keys *keys, int64_t now)
{
    const int64_t hours[HOURS] = {now, now - 1, now + 1};

    for (size_t generation = 0; generation < keyring_generations(keys->keyring); generation++)
        for (size_t i = 0; i < HOURS; i++) {
            struct tls_ticket_key *key = &keys->keys[generation][i];

            derive(keys, generation, hours[i], "name", key->name, sizeof key->name);
            derive(keys, generation, hours[i], "cipher", key->cipher_key, sizeof key->cipher_key);
            derive(keys, generation, hours[i], "mac", key->mac_key, sizeof key->mac_key);
        }
    keys->hour = now;
}

const struct tls_ticket_key *ticket_keys_find(void *arg, const uint8_t *name)
{
    struct ticket_keys *keys = arg;
    const int64_t hour = clock_wall_ms() / HOUR_MS;

    if (hour != keys->hour)
        derive_all(keys, hour);
    if (!name)
        return &keys->keys[0][0];
    for (size_t generation = 0; generation < keyring_generations(keys->keyring); generation++)
        for (size_t i = 0; i < HOURS; i++)
            if (memcmp(keys->keys[generation][i].name, name, TLS_TICKET_NAME_BYTES) == 0)
                return &keys->keys[generation][i];
    return NULL;
}

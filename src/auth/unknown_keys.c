#include "unknown_keys_internal.h"
#include "base/check.h"
#include "base/secure.h"

#include <string.h>

/* A client that retries an unknown key costs one Redis read per 5 s and node. Secrets are random, so an unknown digest
 * becomes known only if Redis gets other data, for example from a backup. */
static const uint64_t UNKNOWN_NS = UINT64_C(5000000000);

enum { AT_SET = 8 }; /* the digest's bytes that pick its set */

_Static_assert((UNKNOWN_KEYS_SETS & (UNKNOWN_KEYS_SETS - 1)) == 0, "a mask picks the set");

/* With a single place for each digest, two that collide would be read from the store again and again. */
static size_t first_of(const uint8_t *digest)
{
    uint32_t bits;
    memcpy(&bits, digest + AT_SET, sizeof bits);
    return (bits & (UNKNOWN_KEYS_SETS - 1)) * UNKNOWN_KEYS_WAYS;
}

/* The second half tells digests apart as well as the whole, and ends with the bucket. */
static const uint8_t *end_of(const uint8_t *digest)
{
    return digest + (KEY_DIGEST_BYTES - UNKNOWN_KEY_BYTES);
}

static bool is_of(const struct unknown_key *place, const uint8_t *digest)
{
    return secure_equal((struct text){(const char *)place->digest_end, UNKNOWN_KEY_BYTES},
                        (struct text){(const char *)end_of(digest), UNKNOWN_KEY_BYTES});
}

/* UNKNOWN_KEYS_SLOTS: it has none. */
static size_t place_of(const struct unknown_key *table, const uint8_t *digest)
{
    const size_t first = first_of(digest);
    for (size_t i = first; i < first + UNKNOWN_KEYS_WAYS; i++)
        if (is_of(&table[i], digest))
            return i;
    return UNKNOWN_KEYS_SLOTS;
}

/* A place that is free, or else the first that will be. */
static size_t first_to_expire(const struct unknown_key *table, size_t first)
{
    size_t found = first;
    for (size_t i = first + 1; i < first + UNKNOWN_KEYS_WAYS; i++)
        if (table[i].expires_ns < table[found].expires_ns)
            found = i;
    return found;
}

bool unknown_keys_include(const struct unknown_key *table, const uint8_t digest[KEY_DIGEST_BYTES], uint64_t now_ns)
{
    const size_t place = place_of(table, digest);
    return place < UNKNOWN_KEYS_SLOTS && now_ns < table[place].expires_ns;
}

void unknown_keys_add(struct unknown_key *table, const uint8_t digest[KEY_DIGEST_BYTES], uint64_t now_ns)
{
    size_t place = place_of(table, digest);
    if (place == UNKNOWN_KEYS_SLOTS)
        place = first_to_expire(table, first_of(digest));
    ENSURE(place < UNKNOWN_KEYS_SLOTS);
    memcpy(table[place].digest_end, end_of(digest), UNKNOWN_KEY_BYTES);
    table[place].expires_ns = now_ns + UNKNOWN_NS;
}

void unknown_keys_forget(struct unknown_key *table, const uint8_t digest[KEY_DIGEST_BYTES])
{
    const size_t place = place_of(table, digest);
    if (place < UNKNOWN_KEYS_SLOTS)
        table[place].expires_ns = 0;
    ALL_ENSURE(!unknown_keys_include(table, digest, 0));
}

void unknown_keys_clear(struct unknown_key *table)
{
    memset(table, 0, UNKNOWN_KEYS_SLOTS * sizeof *table);
}

void unknown_keys_clear_partition(struct unknown_key *table, unsigned partition, unsigned partitions)
{
    for (size_t i = 0; i < UNKNOWN_KEYS_SLOTS; i++)
        if ((table[i].digest_end[UNKNOWN_KEY_BYTES - 1] & (partitions - 1)) == partition)
            table[i].expires_ns = 0;
}

/* Counts what still needs which master key. It reads all keys and users, and reseals them on demand. */
#pragma once
#include "admin/store_client.h"
#include "core/key.h"

enum census_act {
    CENSUS_COUNTS,
    CENSUS_SEALS,  /* also reseals what a retired master key sealed */
    CENSUS_ADOPTS, /* also trusts and seals records without a seal */
    CENSUS_ENDS,   /* also binds password hashes to their users, which nodes of earlier versions cannot read */
};

enum { CENSUS_KEYS_NAMED = 8 };

struct key_census {
    size_t generations;
    char names[KEYRING_MAX_GENERATIONS][KEYRING_SHORT_NAME_CHARS + 1];
    struct census_row {
        uint64_t keys;      /* active keys with a digest made with it; until each is replaced */
        uint64_t passwords; /* until each user signs in */
        uint64_t codes;     /* users whose recovery codes need it; until each makes new ones */
        uint64_t seals;     /* until 'master-key rotate' */
    } of[KEYRING_MAX_GENERATIONS];
    uint64_t keys_unknown;         /* active keys that do not record their master key */
    uint64_t users, users_unknown; /* users_unknown: their password or TOTP secret needs a master key that is missing */
    uint64_t unsealed, altered, resealed;
    uint64_t keys_above_role; /* active keys with scopes that the role of the person they go back to may not give */
    struct id above_role[CENSUS_KEYS_NAMED]; /* the first of them */
    uint64_t missed;                         /* changed by somebody else meanwhile; another run seals them */
};

/* client must have been opened with keyring. Returns EXIT_DONE, or an exit code after printing an error. */
MUST_CHECK int key_census_take(struct store_client *client, struct keyring *keyring, enum census_act act,
                               struct key_census *ret_census);
/* True if anything that was counted needs this generation. */
bool key_census_needs(const struct key_census *census, size_t generation);

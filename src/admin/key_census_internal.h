/* What still needs which master key: all keys and users are looked through, and sealed anew on demand. */
#pragma once
#include "admin/store_client.h"

enum census_act {
    CENSUS_COUNTS,
    CENSUS_SEALS,  /* what a retired master key has sealed is sealed by the current one */
    CENSUS_ADOPTS, /* and what none has: what is there is believed */
    CENSUS_ENDS,   /* and passwords are bound to their users, which an earlier version's nodes can't read */
};

struct key_census {
    size_t generations;
    char names[KEYRING_MAX_GENERATIONS][KEYRING_SHORT_NAME_CHARS + 1];
    struct census_row {
        uint64_t keys;      /* active ones whose digest is made with it: until each is replaced */
        uint64_t passwords; /* until each user signs in */
        uint64_t seals;     /* until 'master-key rotate' */
    } of[KEYRING_MAX_GENERATIONS];
    uint64_t keys_unknown;         /* active ones that do not say with which */
    uint64_t users, users_unknown; /* of these: whose password or one-time codes no master key here opens */
    uint64_t unsealed, altered, resealed;
    uint64_t missed; /* changed by others meanwhile: another run seals them */
};

/* The client has the keyring. EXIT_DONE, or the code of what was told. */
MUST_CHECK int key_census_take(struct store_client *client, struct keyring *keyring, enum census_act act,
                               struct key_census *ret_census);
/* Whether anything counted needs that generation. */
bool key_census_needs(const struct key_census *census, size_t generation);

/* Keys that were revoked long ago, and what stays of them. */
#pragma once
#include "fixture.h"

#define DAY_MS INT64_C(86400000)
enum { OLD_NAME_BYTES = 96 };

struct old_key {
    struct fixture_key key;
    char digest[2 * KEY_DIGEST_BYTES + 1], tombstone[OLD_NAME_BYTES]; /* "dead:…" */
};

/* A live key that was made a day before it was revoked, so many days ago. account NULL: the fixture's own. */
void old_key_add(struct fixture *fixture, const char *account, enum key_kind kind, int64_t days, struct old_key *ret);
/* Until a node has buried it. */
void old_key_await(const struct fixture *fixture, const char *account, const struct old_key *old);
/* What Redis has of that name; valid until the next call. */
const char *redis_get(const struct fixture *fixture, const char *name);

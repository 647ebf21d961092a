/* Keys whose state is known, to be checked at every node while a Redis is replaced: each answer is the truth or 503. */
#pragma once
#include "fixture.h"

enum { WATCHED_KEYS = 8 };

struct watched_keys {
    const struct fixture *fixture;
    struct fixture_key kept[WATCHED_KEYS], revoked[WATCHED_KEYS];
};

/* Alternately kept and revoked, all of them in every node's memory first. */
void watched_keys_make(struct watched_keys *keys);
/* What may be answered at any moment; true when it was the truth, not 503, for all. */
bool watched_keys_check(const struct watched_keys *keys);
/* Until it is, and for that long at least. */
void watched_keys_check_until_known(const struct watched_keys *keys, int64_t at_least_ms);
/* A change through each node; a revocation counts everywhere once it is answered. */
void watched_keys_change_everything(struct watched_keys *keys);

/* Returns the status. */
int watched_keys_try_revoke(const struct watched_keys *keys, size_t node, const struct fixture_key *key);
/* What a client does whose change was answered 503: it repeats it. The first answers after a failover do not end that,
 * for it takes a while until a replica keeps up with its new master. */
void watched_keys_revoke(const struct watched_keys *keys, size_t node, const struct fixture_key *key);
void watched_keys_create(const struct watched_keys *keys, size_t node, const char *json, struct fixture_key *ret_key);
/* Until the key gets that status; 503 alone before. */
void watched_keys_await(const struct watched_keys *keys, size_t node, const struct fixture_key *key, int wanted);

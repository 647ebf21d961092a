/* Asking nodes about keys, as a backend without a gateway does. */
#pragma once
#include "fixture.h"

/* One question. Members that are NULL are left out; scopes: an array as JSON. */
struct asking {
    const char *key, *method, *path, *scopes, *network;
};

enum { ASKING_BYTES = 1024 };
/* Prints it as JSON. */
void asking_print(const struct asking *asking, char ret_json[ASKING_BYTES]);
/* POST to the internal listener on a connection of its own. Returns the status. */
int asking_post(const struct fixture *fixture, size_t node, const char *target, const char *json,
                struct http_answer *ret_answer);
/* POST /check/verify. */
int asking_verify(const struct fixture *fixture, size_t node, const struct asking *asking,
                  struct http_answer *ret_answer);
/* The verdict at a path of the answer ("" or "data.3.") is the one that nginx' auth_request gets for the same key, path
 * and method. */
void asking_expect_verdict_of_check(const struct fixture *fixture, const struct asking *asking,
                                    const struct http_answer *answer, const char *at);
/* The value at that path of the answer, below `at`; "(none)": there is none. Valid until eight more are read. */
const char *asking_member(const struct http_answer *answer, const char *at, const char *name);

/* Keys and what may be asked about them, of every verdict that a check knows. */
enum { ASKINGS_MAX = 64 };
struct askings {
    struct fixture_key read, test, device, revoked, revoked_device, suspended;
    struct asking list[ASKINGS_MAX];
    size_t count;
};
void askings_make(struct fixture *fixture, struct askings *ret_askings);
/* One node with a lease, whose Redis is killed; then the lease has ended. */
void asking_start_without_store(struct fixture *fixture);

/* Asks two nodes about a key that is in memory at both, on many connections, while it is revoked at one; then once more
 * on each. The first must have found it good now and then, the last never. */
struct asking_race {
    const char *target;
    /* Sets json or form of the call; other: a key that stays. */
    void (*prepare)(const char *secret, const char *other, struct http_call *call);
    /* How often the revoked key is good by that answer; checks the rest of it. */
    size_t (*count_good)(const struct http_answer *answer);
};
void asking_race(const struct asking_race *race);

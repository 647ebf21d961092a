#include "watched_keys.h"
#include "deadline.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>

enum { STEP_MS = 10 };

int watched_keys_try_revoke(const struct watched_keys *keys, size_t node, const struct fixture_key *key)
{
    struct http_answer answer;
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    return fixture_call(
        keys->fixture, node,
        &(struct http_call){.method = "DELETE", .target = target, .bearer = keys->fixture->manager.secret}, &answer);
}

/* What a client does whose change was not answered, for a failover may go on behind the first answers: it takes a while
 * until a replica keeps up with its new master. */
void watched_keys_revoke(const struct watched_keys *keys, size_t node, const struct fixture_key *key)
{
    int64_t start_ms = deadline_now_ms();
    int status;

    while ((status = watched_keys_try_revoke(keys, node, key)) != 200) {
        cr_assert_eq(status, 503);
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "changes do not come back");
        poll(NULL, 0, STEP_MS);
    }
}

void watched_keys_create(const struct watched_keys *keys, size_t node, const char *json, struct fixture_key *ret_key)
{
    int64_t start_ms = deadline_now_ms();
    int status;

    while ((status = fixture_try_create_key(keys->fixture, node, json, ret_key)) != 201) {
        cr_assert_eq(status, 503);
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "changes do not come back");
        poll(NULL, 0, STEP_MS);
    }
}

void watched_keys_await(const struct watched_keys *keys, size_t node, const struct fixture_key *key, int wanted)
{
    int64_t start_ms = deadline_now_ms();
    int status;

    while ((status = fixture_try_key(keys->fixture, node, key->secret)) != wanted) {
        cr_assert_eq(status, 503, "%d at node %zu in place of %d", status, node, wanted);
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "the nodes do not come back");
        poll(NULL, 0, STEP_MS);
    }
}

/* Alternately kept and revoked, all of them in every node's memory first. */
void watched_keys_make(struct watched_keys *keys)
{
    for (unsigned i = 0; i < WATCHED_KEYS; i++) {
        watched_keys_create(keys, i % keys->fixture->node_count, "{\"name\":\"kept\",\"mode\":\"live\"}",
                            &keys->kept[i]);
        watched_keys_create(keys, i % keys->fixture->node_count, "{\"name\":\"revoked\",\"mode\":\"live\"}",
                            &keys->revoked[i]);
        for (size_t node = 0; node < keys->fixture->node_count; node++) {
            watched_keys_await(keys, node, &keys->kept[i], 200);
            watched_keys_await(keys, node, &keys->revoked[i], 200);
        }
        watched_keys_revoke(keys, (i + 1) % keys->fixture->node_count, &keys->revoked[i]);
    }
}

/* What may be answered at any moment; true when it was the truth, not 503, for all. */
bool watched_keys_check(const struct watched_keys *keys)
{
    bool is_known = true;

    for (unsigned i = 0; i < WATCHED_KEYS; i++) {
        for (size_t node = 0; node < keys->fixture->node_count; node++) {
            int kept = fixture_try_key(keys->fixture, node, keys->kept[i].secret);
            int revoked = fixture_try_key(keys->fixture, node, keys->revoked[i].secret);

            cr_assert(kept == 200 || kept == 503, "an acknowledged key: %d at node %zu", kept, node);
            cr_assert(revoked == 401 || revoked == 503, "a revoked key: %d at node %zu", revoked, node);
            is_known = is_known && kept == 200 && revoked == 401;
        }
    }
    return is_known;
}

void watched_keys_check_until_known(const struct watched_keys *keys, int64_t at_least_ms)
{
    int64_t start_ms = deadline_now_ms();

    while (!watched_keys_check(keys) || deadline_now_ms() - start_ms < at_least_ms) {
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "the nodes do not come back");
        poll(NULL, 0, STEP_MS);
    }
}

/* A change through each node; a revocation counts everywhere once it is answered. */
void watched_keys_change_everything(struct watched_keys *keys)
{
    for (size_t node = 0; node < keys->fixture->node_count; node++) {
        struct fixture_key key;

        watched_keys_create(keys, node, "{\"name\":\"new\",\"mode\":\"test\"}", &key);
        for (size_t i = 0; i < keys->fixture->node_count; i++)
            watched_keys_await(keys, i, &key, 200);
        watched_keys_revoke(keys, (node + 1) % keys->fixture->node_count, &key);
        for (size_t i = 0; i < keys->fixture->node_count; i++)
            watched_keys_await(keys, i, &key, 401);
    }
}

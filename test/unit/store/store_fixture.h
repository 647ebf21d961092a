/* A store on a loop, over a private Redis. Its partitions, usually one, are groups of names there. */
#pragma once
#include "redis_server.h"
#include "records/account_store.h"
#include "records/key_store.h"
#include "engine/partitions.h"
#include "test_loop.h"

struct store_fixture {
    struct redis_server server;
    uv_loop_t loop;
    struct partitions *partitions;
    struct store *store;     /* the first partition */
    struct keyring *keyring; /* of the store */
    bool is_closed;
};
extern struct store_fixture fixture; /* each test has a process of its own */

/* .init and .fini of suites. The latter proves that the loop closes cleanly and nothing leaks. */
void fixture_start(void);
void fixture_stop(void);
/* Closes the store and runs the loop until it is closed. fixture_stop() does this too. */
void fixture_close_store(void);
/* Opens another store over the same Redis, once the previous one is closed. fixture_start() opens one with "t:". */
void fixture_open_store(const char *prefix);
/* So many partitions over the same Redis, besides or instead of that store. */
struct partitions *fixture_open_partitions(const char *prefix, unsigned count);
void fixture_close_partitions(struct partitions *partitions);
/* Replaces the store by that many partitions of "t:". */
void fixture_spread(unsigned count);
struct store *fixture_home(const struct id *account);
/* "t:", or "t:{2}:". */
void fixture_prefix(const struct id *account, char ret_prefix[16]);

/* How a verb with store_done ended. calls counts its completions. */
struct answer {
    bool is_done;
    unsigned calls;
    enum store_result result;
};
void answer_inserted(void *arg, enum store_result result, uint32_t retry_after_s);
void answer_done(void *arg, enum store_result result);
/* Runs the loop until the verb has completed, which it must not have done inside its call. */
enum store_result answer_wait(struct answer *answer);

/* For verbs that may have to wait. */
struct wait_answer {
    struct answer answer;
    uint32_t retry_after_s;
};
void wait_answer_done(void *arg, enum store_result result, uint32_t retry_after_s);
/* Whether a caller was told to wait so long, less up to 10 s that have passed since the wait began. */
bool is_wait_of(uint32_t wait_s, uint32_t told_s);

/* For verbs that find one record, which is copied. */
struct key_answer {
    struct answer answer;
    struct key_record key;
};
void key_answer_done(void *arg, enum store_result result, const struct key_record *key);

extern const struct audit_source SOMEBODY;
struct id some_account(void);                                              /* created in the store */
struct user_record some_user(const struct id *account, const char *email); /* likewise, an owner */
struct user_record some_person(const struct id *account, const char *email, enum role role);
/* A record as the API makes it, not in the store. digest: the first byte is n, the rest 0. */
struct key_record some_key(const struct id *account, enum key_mode mode, uint8_t n,
                           uint8_t ret_digest[KEY_DIGEST_BYTES]);
enum store_result insert_key(const struct key_record *key, const uint8_t digest[KEY_DIGEST_BYTES]);
/* Asserts the `type` of the account's newest event, and the number of events. */
void expect_newest_event(const struct id *account, const char *type, long long count);
void expect_newest_refusal(const struct id *account, const char *type, long long count);
/* The scripts that Redis has run so far by EVALSHA. */
unsigned scripts_run(void);

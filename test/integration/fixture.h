/* What nearly every integration test needs: a Redis of its own, real nodes on it, an account, and credentials. Keys and
 * sessions are put into the store by the product's own verbs, which costs no password hash.
 *
 * The same tests run on other arrangements of Redis, as these variables say, which the program reads in part as well:
 * CHATELAINE_PARTITIONS  how many partitions the store has; one without it
 * CHATELAINE_TEST_CLUSTER  how many primaries without replicas a Redis Cluster has, 1 to 3; without it one plain Redis.
 *                          CHATELAINE_UNSAFE_REDIS=1 is needed too, because the program demands replicas there. */
#pragma once
#include "clock_file.h"
#include "core/account.h"
#include "core/key.h"
#include "http_client.h"
#include "node.h"
#include "redis_cluster.h"
#include "redis_server.h"

enum { FIXTURE_NODES_MAX = 3, FIXTURE_TOKEN_BYTES = 64 };

#define FIXTURE_PASSWORD "correct-Horse-battery-9"

struct fixture_key {
    char id[ID_TEXT_BYTES];
    char secret[FIXTURE_TOKEN_BYTES];
};

struct fixture_session {
    char token[FIXTURE_TOKEN_BYTES];
    char csrf[FIXTURE_TOKEN_BYTES];
};

struct fixture_user {
    char id[ID_TEXT_BYTES];
    char account[ID_TEXT_BYTES]; /* empty: the fixture's own */
    char email[64];
    char totp_uri[512];                    /* empty without a real password */
    char join_cookie[FIXTURE_TOKEN_BYTES]; /* of who has started with a link */
};

struct fixture {
    struct redis_server redis;      /* in a cluster its first primary, with the others as `next` */
    struct cluster_servers cluster; /* only what `redis` points at is used */
    struct node nodes[FIXTURE_NODES_MAX];
    size_t node_count;
    char folder[PROCESS_PATH_BYTES];
    char master_key_path[PROCESS_PATH_BYTES];
    char password_path[PROCESS_PATH_BYTES];
    char account[ID_TEXT_BYTES];
    struct fixture_user user;   /* cannot sign in: no true password */
    struct fixture_key manager; /* live, every scope */
    int64_t min_replicas;       /* for the test's own verbs */
    struct direct *kept;        /* the store, between fixture_open_store() and fixture_close_store() */
    bool draws_elsewhere;       /* keys and sessions lie in another bucket than their account, as before it was so */
    bool wrote_names;           /* the test itself has written names that have a time to live otherwise */
};

/* Starts Redis and `nodes` nodes (0 is fine: account and keys are there all the same). more: further arguments of
 * `serve`, up to a NULL; may be NULL. Aborts the test on any failure. */
void fixture_start(struct fixture *fixture, size_t nodes, const char *const *more);
/* The same at a Redis Cluster, with one partition, or CHATELAINE_PARTITIONS of them. min_replicas: as many as each
 * primary has. */
void fixture_start_in_cluster(struct fixture *fixture, const char *redis_url, int64_t min_replicas);
/* Drains the nodes, each of which must end cleanly, then stops the Redis that it started. Nodes that the test ended
 * itself are left out. */
void fixture_stop(struct fixture *fixture);
void fixture_add_node(struct fixture *fixture, const char *const *more);
/* One whose wall clock is so many seconds ahead, see clock_file.h; the caller removes the file. */
void fixture_add_node_with_clock(struct fixture *fixture, struct clock_file *clock, int ahead_s, const char *rate);
/* The same with a clock that is there, such as Redis'. */
void fixture_add_node_by_clock(struct fixture *fixture, const struct clock_file *clock, const char *rate);
/* The same for a node, and a Redis, of the caller's choice. Nodes wait 10 s for Redis unless `more` says otherwise: one
 * whose disk is busy is not one that hangs. Returns once it serves all partitions. */
void fixture_start_node(struct fixture *fixture, size_t node, const char *name, const char *redis_url,
                        const char *const *more);
/* Whether the variables above ask for a Redis Cluster. */
bool fixture_in_cluster(void);
/* For tests about what only one Redis does, or a store in one piece, whatever the variables above say; the reason is
 * printed. Call it before fixture_start(). */
void fixture_use_one_redis(const char *reason);
/* The same, which implies one Redis: names have no partition. */
void fixture_use_one_partition(const char *reason);
unsigned fixture_partitions(void);
unsigned fixture_partition_of(const char *account);
/* A name in Redis, without the prefix and the partition of that account, with both in front: for looking at what is
 * stored. Valid until eight more are made. account NULL: partition 0. */
const char *fixture_name(const char *account, const char *rest);
/* The same in a partition by its number. */
const char *fixture_name_in(unsigned partition, const char *rest);
/* What a command with a single argument, such as HLEN, returns for that name in all partitions together. */
long fixture_sum(const struct fixture *fixture, const char *command, const char *rest);
/* Until the node serves every partition: /readyz is 200 as soon as it serves one. */
void fixture_await_all_ready(const struct fixture *fixture, size_t node);
/* Returns once the node has read what was sent to it before, and has sent on to Redis what that asks for: the answers
 * of its internal listener come from the same loop. */
void fixture_await_read(const struct fixture *fixture, size_t node);

/* The functions below each connect to the store and close it again, unless it is kept open for many of them: at a Redis
 * that may be replaced, a new connection waits before its first change. */
void fixture_open_store(struct fixture *fixture);
void fixture_close_store(struct fixture *fixture);
void fixture_add_account(struct fixture *fixture, char ret_account[ID_TEXT_BYTES]);
/* One whose data lies in that partition. */
void fixture_add_account_in(struct fixture *fixture, unsigned partition, char ret_account[ID_TEXT_BYTES]);
/* An active key. account NULL: the fixture's own. */
void fixture_add_key(struct fixture *fixture, const char *account, enum key_kind kind, enum key_mode mode,
                     scope_set scopes, struct fixture_key *ret_key);
/* The same for one that was created then. */
void fixture_add_key_of(struct fixture *fixture, const char *account, enum key_kind kind, enum key_mode mode,
                        scope_set scopes, int64_t created_ms, struct fixture_key *ret_key);
void fixture_revoke_key(struct fixture *fixture, const struct fixture_key *key);
/* A key that replaces another one was accepted, which is noted behind the answer: waits until it is. */
void fixture_await_in_use(const struct fixture *fixture, const char *account, const char *key_id);
/* A session of the fixture's user, or of another. stepped_up: with a fresh step-up. Times of the limits are the
 * standard ones. */
void fixture_add_session(struct fixture *fixture, const struct fixture_user *user, bool stepped_up,
                         struct fixture_session *ret_session);

/* A user whom nobody can sign in as: the hash belongs to no password. account NULL: the fixture's own. */
void fixture_add_person(struct fixture *fixture, const char *account, const char *email, enum role role,
                        struct fixture_user *ret_user);

/* One who can sign in with FIXTURE_PASSWORD. Unlike fixture_add_user() it runs no program, so it is cheap where tests
 * need many. account NULL: the fixture's own. */
void fixture_add_member(struct fixture *fixture, const char *account, const char *email, enum role role,
                        struct fixture_user *ret_user);

/* Runs the program's own `user create`, with FIXTURE_PASSWORD: costs one password hash. */
void fixture_add_user(struct fixture *fixture, const char *email, struct fixture_user *ret_user);
/* The code that a user's app would show now, or steps later. */
void fixture_totp(const struct fixture_user *user, int steps, char ret_code[8]);
/* POST /v1/auth/login; code NULL: the current one. ret_session may be NULL; it is filled on 200. Returns the status. */
int fixture_login(struct fixture *fixture, size_t node, const struct fixture_user *user, const char *password,
                  const char *code, struct fixture_session *ret_session, struct http_answer *ret_answer);
/* The new token of a session in an answer's Set-Cookie; false where there is none. */
bool fixture_read_cookie(const struct http_answer *answer, char ret_token[FIXTURE_TOKEN_BYTES]);
/* Of the cookie with that name. */
bool fixture_read_cookie_of(const struct http_answer *answer, const char *name, char ret_token[FIXTURE_TOKEN_BYTES]);

/* Runs the program with these arguments (up to a NULL), --redis and --master-key-file added. ret_out and ret_err (may
 * be NULL) are freed by the caller. Returns the exit code. */
int fixture_run(struct fixture *fixture, const char *const *args, const char *input, char **ret_out, char **ret_err);
/* The same, again and again until it ends well and prints that. */
void fixture_run_until(struct fixture *fixture, const char *const *args, const char *says);

/* One request to a node's public listener on a connection of its own. Returns the status. */
int fixture_call(const struct fixture *fixture, size_t node, const struct http_call *call,
                 struct http_answer *ret_answer);
/* The value of a sample of /metrics: its name and labels, in full. Stops the test if there is none. */
long fixture_metric(const struct fixture *fixture, size_t node, const char *sample);
/* POST /v1/api_keys by the manager key. Returns the status; the key is set only with 201. */
int fixture_try_create_key(const struct fixture *fixture, size_t node, const char *json, struct fixture_key *ret_key);
/* The same; stops the test unless 201. */
void fixture_create_key(const struct fixture *fixture, size_t node, const char *json, struct fixture_key *ret_key);
/* The status that a key gets on GET /v1/whoami. */
int fixture_try_key(const struct fixture *fixture, size_t node, const char *secret);
/* Until it gets the wanted one. Before that 503 alone: whoever decides nothing is never wrong. */
void fixture_await_key(const struct fixture *fixture, size_t node, const char *secret, int wanted);
/* The same with 403 as well: nothing waits until every node has heard that an account is resumed. */
void fixture_await_resumed(const struct fixture *fixture, size_t node, const char *secret, int wanted);
/* Schedules its revocation in the console 1.5 s ahead, or farther if that has passed before the node reads it. */
void fixture_end_soon(struct fixture *fixture, size_t node, const struct fixture_key *key);

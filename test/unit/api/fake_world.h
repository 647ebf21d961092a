/* The surroundings of the api layer, faked at link time: requests that record their replies, and a store, keys and
 * passwords that answer as the test says. Completions wait in a queue, so that each comes later, as the contracts
 * demand. Code that only computes (bearer, cookies, CSRF tokens, scopes, policy, JSON) is real. */
#pragma once
#include "api/problem_internal.h"
#include "api/service.h"
#include "http/response.h"
#include "records/device_store.h"
#include "records/factor_store.h"

/* A cookie of the right form; world.session_result says whether it is a session. */
#define SESSION_COOKIE "Cookie: __Host-session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
/* The fake check knows the tokens good, revoked and away, and no others. */
#define GOOD_KEY "Authorization: Bearer good\n"
/* $CSRF becomes the CSRF token of world.session. */
#define RIGHT_CSRF "X-CSRF-Token: $CSRF\n"
/* The user's code at the time when the world begins. */
#define RIGHT_CODE "005924"
#define FORM_TYPE "Content-Type: application/x-www-form-urlencoded\n"
#define JSON_TYPE "Content-Type: application/json\n"

enum stream_end { STREAM_UNENDED, STREAM_WHOLE, STREAM_BROKEN };

struct world {
    struct service service;

    /* What the fakes answer. */
    const char *peer, *client_name, *store_trouble,
        *store_refusal; /* of a store that is ready; store_refusal may be NULL */
    bool asserts_durability;
    struct key_record key;
    bool checks_at_once;
    const struct route_policy *policy_later; /* in force once a key is being looked up; NULL: as before */
    bool has_client_certificate;
    struct session_record session;
    struct session_notices notices;
    struct session_row sessions[2];
    size_t session_count;
    struct waiting_totp waiting;
    struct id email_account; /* of whoever has the email that is asked for; empty: nobody has */
    enum store_result owner_result;
    enum store_result totp_begin_result, waiting_result, confirm_result, recovery_result, codes_result, stop_result,
        list_result;
    bool recovery_code_fits, rehash_fails;
    enum store_result session_result, insert_result, revoke_result, attempt_result, create_result, end_result,
        fail_result;
    bool browser_known, user_locked;
    uint32_t retry_after_s; /* of a refused session */
    struct login_failure failure;
    bool user_known;
    enum store_result begin_result, poll_result, enrolment_result, held_result, miss_result;
    unsigned begin_conflicts; /* this many conflicts come first */
    struct device_poll poll;
    struct device_enrolment enrolment;
    enum password_result password_result;
    int64_t password_takes_ms;
    int64_t wall_ms; /* stands still, except while passwords are hashed */
    bool delivered;
    unsigned trail_pages, search_fails_at; /* pages of one event each; which search of them fails, 0: none */
    uint64_t age_ns, piece_takes_ns;       /* of requests; what sending a piece of a stream adds */

    /* What the fakes saw. */
    unsigned searches, pieces;
    enum stream_end stream;
    char piece[1024]; /* the last one of a stream, cut */
    unsigned rehashes, password_changes, totp_begins, confirms, recoveries;
    bool had_recovery_code, confirmed_by_session, keeps_session;
    char stopped[ID_TEXT_BYTES];
    char client_ip[64]; /* given with the last session that was loaded */
    char browser[BROWSER_NAME_BYTES];
    unsigned refusals[USAGE_REASONS];
    struct usage_refusal refusal;      /* of the first */
    size_t body_raised_to, list_count; /* of the last list of keys to revoke */
    struct id list_first;
    unsigned uses, inserts, discards, revokes, proofs, failures, creations, begins, polls, user_codes, helds, misses;
    struct token_digests held_secret;      /* of the last revocation by secret */
    const char *written_email;             /* of a user of an earlier version; NULL: none */
    char attempted[EMAIL_MAX_BYTES + 1];   /* the email of the last sign-in */
    const enum store_result *held_results; /* one for each revocation by secret; NULL: held_result for all */
    char device_name[64];
    bool approves;
    bool needs_step_up;   /* the last change */
    char email_asked[64]; /* whose it is */
    struct key_record inserted;
    int64_t ends_ms; /* of a key whose revocation was scheduled */
    bool may_delay;  /* it may be later than before */
    struct key_view view;
    bool had_hash, only_code_wrong, presented;
    unsigned given_back;
    struct password_turn turn;
    char counters[512], browser_digest[80]; /* of the last attempt */
    char ip_tag[THROTTLE_TAG_CHARS + 1];    /* of the last rate-limited attempt */
    char user_code_tag[THROTTLE_TAG_CHARS + 1];
    unsigned wipes; /* of secrets, deferred to the end of their request */
    size_t password_bytes;
    unsigned missed; /* changes that changed nothing and were counted */
    bool misses_email;
    enum store_result missed_result;
};
extern struct world world;

/* A live key with all scopes, a session with a fresh step-up, and a store that accepts everything. For a suite's .init
 * and .fini; the latter also looks for leaks. */
void world_begin(void);
void world_end(void);

/* For fakes of changes. world_create_later() completes like a session that was created. */
void world_create_later(session_found *done, void *arg);
/* The session with the retry_after_s of the world. */
const struct session_record *world_refused_session(void);
void world_expect_bucket(const uint8_t digest[KEYRING_DIGEST_BYTES], const struct id *account);
void world_expect_credential(const struct audit_source *source, bool by_key);

/* A call of the store that answers later: run calls done, by its own type. */
struct completion {
    void (*run)(const struct completion *completion);
    void (*done)(void);
    void *arg;
    int result; /* if it does not depend on the world alone */
    struct http_request *request;
};
/* Defines a `run` for done functions of that type, which takes arg and these. */
#define COMPLETION(name, type, ...)                                                         \
    static void name(const struct completion *completion)                                   \
    {                                                                                       \
        ((__typeof__(type) *)completion->done)(completion->arg __VA_OPT__(, ) __VA_ARGS__); \
    }
#define ANSWER_LATER(run, done, arg) ANSWER_WITH(run, done, arg, 0)
#define ANSWER_WITH(run, done, arg, result) \
    world_complete((struct completion){run, (void (*)(void))(done), arg, (int)(result), NULL})
/* Queues a completion behind those that were begun before. */
void world_complete(struct completion completion);
void world_later(void (*run)(void *arg), void *arg);
/* Runs them, and those that they queue. */
void world_run(void);

/* headers: lines "Name: value\n". body NULL: none. Sends it through api_handle_public(). */
struct http_request *request_send(enum http_method method, const char *target, const char *headers, const char *body);
/* Does so, but the client leaves before the first completion. */
struct http_request *request_send_and_leave(enum http_method method, const char *target, const char *headers,
                                            const char *body);
/* Through api_handle_internal(). */
struct http_request *request_send_internal(enum http_method method, const char *target);
struct http_request *request_check(enum http_method method, const char *target, const char *headers, const char *body);
int answer_status(const struct http_request *request); /* 0: none */
/* NUL-terminated; for a problem, its body. */
const char *answer_body(const struct http_request *request);
/* All header lines except those of problems. */
const char *answer_headers(const struct http_request *request);
bool answer_closes(const struct http_request *request); /* the connection ends with it */
const struct problem *answer_problem(const struct http_request *request);
/* Its client is gone. */
void request_leave(struct http_request *request);
void request_forget(struct http_request *request);

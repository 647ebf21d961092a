/* One request on its way through the guard to its handler: what both know about it, and how handlers reply. Lives in
 * the request's arena. */
#pragma once
#include "api/routes.h"
#include "api/service.h"
#include "base/json.h"
#include "http/response.h"
#include "problem_internal.h"
#include "query_internal.h"
#include "routes_internal.h"
#include "records/change_missed.h"

struct mount;
struct exchange_answer;
struct key_question;

struct exchange_place {
    const char *list;
    size_t at;
};

/* The ids of 20,000 keys, the most that an account has at a time by default, several times over. */
enum { ANSWER_MAX_BYTES = 4 * 1024 * 1024 };
/* One record with the longest name, escaped. */
enum { ANSWER_SMALL_BYTES = 4096 };

struct exchange {
    struct http_request *request;
    struct service *service;
    enum http_method method;   /* of the request, or of the request that a gateway asks about */
    struct text path;          /* likewise */
    const struct mount *mount; /* of the path; NULL: none, or not looked up yet */
    exchange_handler *admit;   /* runs once the guard has let the request pass */
    /* Answers a refusal in the form of a check or a question. NULL: problem_reply() answers it. */
    void (*reply_refusal)(struct exchange *exchange, struct problem *problem);
    const struct key_question *question; /* the key came in the body, with this question; NULL: it is in the head */
    struct route_match match;
    enum problem_code missing; /* of STORE_NOT_FOUND; PROBLEM_NONE: it cannot be */
    bool is_internal;          /* came to the internal listener */

    /* The principal: exactly one of these, or neither on routes for anyone. */
    const struct key_principal *key;
    const struct session_record *session;
    const struct key_principal *refused_key;      /* set while a known key is being refused; not a principal */
    uint8_t session_digest[KEYRING_DIGEST_BYTES]; /* the digest of the cookie under which the session was found */
    struct token_digests *session_digests;        /* digests to try, one per master key, during the lookup */
    size_t session_tries;
    bool session_may_be_elsewhere; /* than in the partition that the digest leads to */
    struct key_check check;
    struct gate_ticket *ticket;     /* of rows whose class has places; NULL: none */
    struct exchange_answer *answer; /* NULL: nothing was written */

    const struct json *body; /* of ROUTE_JSON rows */
    /* Which part of the request's body that is, for refusals: the element of a list. NULL: all of it. */
    const struct exchange_place *within;
    struct text form; /* the body as it came, until the request is freed */
};

/* Sets the path to the normal form of a path as sent. False if it has none; the caller refuses with 400. */
MUST_CHECK bool exchange_read_path(struct exchange *exchange, struct text path);

/* Replies with a problem, in the realm of the exchange's path. A change that is refused with 404 or 409 is counted like
 * one that was made, and answered after that: with 429 if there were too many. */
void exchange_refuse(struct exchange *exchange, enum problem_code code);
void exchange_refuse_with(struct exchange *exchange, struct problem problem);
/* message: instead of the catalogue's, which NULL stands for. */
void exchange_refuse_saying(struct exchange *exchange, enum problem_code code, const char *message);
/* allow: the value of Allow; must live as long as the exchange. */
void exchange_refuse_method(struct exchange *exchange, const char *allow);
/* Counts changes that changed nothing. is_email_taken: as in struct missed_change. */
void exchange_count_missed(struct exchange *exchange, unsigned count, bool is_email_taken, store_limited *done,
                           void *arg);
/* 429: too many changes by the principal, or by all of its kind in the account. */
void exchange_refuse_limited(struct exchange *exchange, uint32_t retry_after_s);
/* parameter_invalid of a member of the body: says what it must be (param_rule). */
void exchange_refuse_member(struct exchange *exchange, const char *name);
/* parameter_invalid, for a rule that is about more than one value. rule: a sentence that begins with the parameter's
 * name. */
void exchange_refuse_value(struct exchange *exchange, const char *rule);
/* parameter_invalid of `name`, with what is wrong with it. */
void exchange_refuse_name(struct exchange *exchange, struct text name);
/* For the message of a problem; lives as long as the request. */
const char *exchange_format(const struct exchange *exchange, const char *format, ...) PRINTF_LIKE(2, 3);
/* 429: too many attempts. */
void exchange_refuse_throttled(struct exchange *exchange, uint32_t retry_after_s);
/* Maps a store failure to a problem, including a credential that ended meanwhile. Callers handle results with a special
 * meaning themselves, except that of `missing`. */
void exchange_refuse_store(struct exchange *exchange, enum store_result result);
/* The same for a change, which may be one too many (STORE_LIMITED). */
void exchange_refuse_change(struct exchange *exchange, enum store_result result, uint32_t retry_after_s);

/* Begins the JSON of the response. It is wiped once it is sent, or when the request is freed; beyond ANSWER_MAX_BYTES,
 * the response is 500. */
struct json_writer *exchange_answer(struct exchange *exchange, int status);
/* Sends it; 204 if nothing was begun. */
void exchange_reply(struct exchange *exchange);
/* For a handler that has waited for the store: replies, or refuses by exchange_refuse_store(), and releases the
 * request.
 */
void exchange_finish(struct exchange *exchange, enum store_result result);

/* Reads the body by a table of fields. False if the exchange has been refused. */
MUST_CHECK bool exchange_read_body(struct exchange *exchange, const struct json_field *fields, size_t count,
                                   void *target);

/* Reads the id in the path, and sets `missing` for its kind. A malformed id is answered as not found. False if the
 * exchange has been refused. */
MUST_CHECK bool exchange_read_id(struct exchange *exchange, enum id_kind kind, struct id *ret_id);

/* Reads the query; likewise. */
MUST_CHECK bool exchange_read_query(struct exchange *exchange, const struct query *parameters, void *target);

/* Whether somebody still waits for the answer; for work of many steps. arg: the exchange. */
bool exchange_is_wanted(void *arg);

/* The account and the id of the principal; there must be one. */
const struct id *exchange_account(const struct exchange *exchange);
const struct id *exchange_actor(const struct exchange *exchange);
/* The partition of that account. */
struct store *exchange_store(const struct exchange *exchange);
/* For a change: its audit data, and the credential that must still be valid when the change takes effect. The actor is
 * empty if there is no principal. Lives as long as the exchange. */
struct audit_source exchange_source(const struct exchange *exchange);

/* One request on its way through the guard to its handler: what both know of it, and how handlers answer. Lives in the
 * request's arena. */
#pragma once
#include "api/routes.h"
#include "api/service.h"
#include "base/json.h"
#include "http/response.h"
#include "problem_internal.h"
#include "query_internal.h"
#include "routes_internal.h"

struct mount;

/* The largest answers: 100 events, each naming two keys in 800 bytes, and as many keys' days of usage as are told at
 * once stay below 220 KiB. */
enum { ANSWER_MAX_BYTES = 256 * 1024 };
/* One record, its longest name escaped. */
enum { ANSWER_SMALL_BYTES = 4096 };

struct exchange {
    struct http_request *request;
    struct service *service;
    enum http_method method;                  /* of the request, or of the one that a gateway asks about */
    struct text path;                         /* likewise */
    const struct mount *mount;                /* of the path; NULL: not looked for, or there is none */
    void (*admit)(struct exchange *exchange); /* what is to be done once all gates have let it pass */
    /* Refusals of checks speak the dialect of gateways; NULL: a client asks. */
    void (*mark_refusal)(struct http_request *request, struct problem *problem, void *service);
    struct route_match match;

    /* The principal: one of these, or none on routes for anyone. */
    const struct key_principal *key;
    const struct session_record *session;
    const struct key_principal *refused_key;      /* while a key is refused that is known: it is no principal */
    uint8_t session_digest[KEYRING_DIGEST_BYTES]; /* of the session's cookie, as the session is known by it */
    struct token_digests *session_digests;        /* what it may be known by, while it is looked for */
    size_t session_tries;
    struct key_check check;

    const struct json *body; /* of ROUTE_JSON rows */
    struct text form;        /* the body of ROUTE_FORM rows, until the request is freed */
};

/* Sets the path to the normal form of one as it was sent. False if it has none: 400. */
MUST_CHECK bool exchange_read_path(struct exchange *exchange, struct text path);

/* Answers with a problem, in the realm of the exchange's path. */
void exchange_refuse(struct exchange *exchange, enum problem_code code);
void exchange_refuse_with(struct exchange *exchange, struct problem problem);
/* allow: the value of Allow, living as long as the exchange. */
void exchange_refuse_method(struct exchange *exchange, const char *allow);
/* Too many changes by the principal, or by all like it: 429. */
void exchange_refuse_limited(struct exchange *exchange, uint32_t retry_after_s);
/* parameter_invalid, with the rule that was broken: a sentence that begins with the parameter's name. */
void exchange_refuse_value(struct exchange *exchange, const char *rule);
/* Too many tries: 429. */
void exchange_refuse_throttled(struct exchange *exchange, uint32_t retry_after_s);
/* What a verb's failure means to a client, also where his credential has ended meanwhile; the results that a verb gives
 * a meaning of its own are its caller's. */
void exchange_refuse_store(struct exchange *exchange, enum store_result result);

/* Reads the body by a table; false: the exchange has been refused. */
MUST_CHECK bool exchange_read_body(struct exchange *exchange, const struct json_field *fields, size_t count,
                                   void *target);

/* The same for the query. */
MUST_CHECK bool exchange_read_query(struct exchange *exchange, query_reader *read, void *target);

/* The principal's account and own id; there must be a principal. */
const struct id *exchange_account(const struct exchange *exchange);
const struct id *exchange_actor(const struct exchange *exchange);
/* Who asks, as text: the peer's address, or what proxies say that are trusted (--trusted-proxies). For logs and audit
 * events; what is limited is counted by the network, so that nobody escapes within the /64 that is his. */
struct text exchange_client_address(const struct exchange *exchange);
struct text exchange_client_network(const struct exchange *exchange);
/* The block of that many bits that the address lies in; empty for 0 bits. Strangers hold whole blocks, so that failures
 * are counted by them. */
struct text exchange_client_block(const struct exchange *exchange, unsigned ipv4_bits, unsigned ipv6_bits);
/* For a change: its audit event, and the credential that must still be valid when it takes effect. The actor is empty
 * where there is no principal. Lives as long as the exchange. */
struct audit_source exchange_source(const struct exchange *exchange);

/* One line for what an operator must be able to find again. account, actor, target: empty where there is none. */
void exchange_log(const struct exchange *exchange, const char *message, struct text account, struct text actor,
                  struct text target);

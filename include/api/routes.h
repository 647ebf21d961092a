/* The route table. A row holds all access rules of an endpoint. The guard enforces them, and tests iterate over the
 * rows. */
#pragma once
#include "api/gate.h"
#include "core/account.h"
#include "core/scope.h"
#include "http/request.h"

struct exchange;

/* Answers it, now or later; later with the request held. */
typedef void exchange_handler(struct exchange *exchange);

enum route_who { WHO_API_KEY, WHO_SESSION, WHO_ANYONE };
enum route_flags {
    ROUTE_JSON = 1 << 0,    /* takes a JSON body */
    ROUTE_CSRF = 1 << 1,    /* changes something: needs X-CSRF-Token; Origin must match if it is sent */
    ROUTE_STEP_UP = 1 << 2, /* needs a recent step-up */
    ROUTE_ORIGIN = 1 << 3,  /* Origin must match if it is sent (login) */
    ROUTE_QUERY = 1 << 4,   /* takes query parameters; other routes refuse any as parameter_unknown */
    ROUTE_FORM = 1 << 5,    /* takes an application/x-www-form-urlencoded body (OAuth) */
    ROUTE_YIELDS = 1 << 6,  /* an operator's policy file may give the folder to a backend: route_yields() */
    ROUTE_LARGE = 1 << 8,   /* its body may have API_BODY_RAISED_MAX_BYTES, whatever --body-max-bytes says */
    ROUTE_EXPIRED = 1 << 7, /* for a session: also while its user must change the password */
    ROUTE_LIVE = 1 << 9,    /* for a key: it must be a live one */
    ROUTE_TEXT = 1 << 10,   /* anyone's body may have STRANGER_TEXT_MAX_BYTES */
    ROUTE_OAUTH = 1 << 11,  /* refusals have the form of RFC 6749 section 5.2, whoever refuses */
    ROUTE_KEYS = 1 << 13,   /* the secrets of keys belong into its body */
    ROUTE_DEVICE = 1 << 12, /* its keys are device keys; without this, API keys */
};

/* 10,000 ids of 30 characters with quotes and commas take 330 KB. The rest is for blanks. */
enum { API_BODY_RAISED_MAX_BYTES = 400 * 1024 };

struct route {
    enum http_method method; /* GET rows answer HEAD too */
    const char *path;        /* at most one "{id}" segment */
    exchange_handler *handle;
    enum route_who who;
    scope_set scope;      /* that a key needs */
    enum role least_role; /* that a session's user needs */
    unsigned flags;
    enum gate_class class; /* what bounds its requests, so that no account takes work from others */
};

/* True if chatelaine itself always answers at this path, so no backend may (for route_policy_parse()). Routes that
 * yield are not among them. path: normalised, below /v1/; "*" segments are allowed. */
bool api_owns_path(struct text path);

extern const struct route ROUTES[];
extern const size_t ROUTE_COUNT;

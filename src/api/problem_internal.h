/* The catalogue of errors that clients see (src/api/README.md#errors): status, code, type and text, one row each. */
#pragma once
#include "base/text.h"
#include "core/key.h"
#include "core/scope.h"
#include "http/response.h"
#include "param_rule_internal.h"

/* X(id, status, "code", "message") */
#define PROBLEM_TABLE(X)                                                                                            \
    X(PROBLEM_BAD_REQUEST, 400, "bad_request",                                                                      \
      "The request is not valid HTTP, its path is ambiguous, or its Authorization is malformed.")                   \
    X(PROBLEM_TLS_REQUIRED, 400, "tls_required", "This port speaks TLS. Use https:// instead of http://.")          \
    X(PROBLEM_INVALID_JSON, 400, "invalid_json", "The body is not a valid JSON object.")                            \
    X(PROBLEM_PARAMETER_MISSING, 400, "parameter_missing", "A required parameter is missing.")                      \
    X(PROBLEM_PARAMETER_INVALID, 400, "parameter_invalid", "A parameter has a wrong type or value.")                \
    X(PROBLEM_PARAMETER_UNKNOWN, 400, "parameter_unknown", "A parameter is unknown.")                               \
    X(PROBLEM_SECRET_IN_TEXT, 400, "secret_in_text",                                                                \
      "This is an API key where none belongs: it may have leaked, revoke it (POST /v1/auth/revoke).")               \
    X(PROBLEM_MISSING_CREDENTIALS, 401, "missing_credentials", "Send an API key: Authorization: Bearer <API_KEY>.") \
    X(PROBLEM_INVALID_API_KEY, 401, "invalid_api_key", "This API key is not valid.")                                \
    X(PROBLEM_API_KEY_REVOKED, 401, "api_key_revoked", "This API key has been revoked.")                            \
    X(PROBLEM_DEVICE_KEY_REVOKED, 401, "device_key_revoked", "This device key has been revoked.")                   \
    X(PROBLEM_SESSION_NOT_ACCEPTED, 401, "session_not_accepted",                                                    \
      "This route takes an API key; a console session is not accepted.")                                            \
    X(PROBLEM_BEARER_NOT_ACCEPTED, 401, "bearer_not_accepted",                                                      \
      "This route takes a console session; a bearer token is not accepted.")                                        \
    X(PROBLEM_INVALID_SESSION, 401, "invalid_session", "There is no such session, or it has ended. Sign in.")       \
    X(PROBLEM_INVALID_LOGIN, 401, "invalid_login", "Email, password or code is wrong.")                             \
    X(PROBLEM_TOTP_ALREADY_USED, 401, "totp_already_used", "This code was used before. Wait for the next one.")     \
    X(PROBLEM_INSUFFICIENT_SCOPE, 403, "insufficient_scope", "The key lacks the scope for this request.")           \
    X(PROBLEM_MODE_NOT_PERMITTED, 403, "mode_not_permitted", "A test key cannot create a live key.")                \
    X(PROBLEM_SCOPE_NOT_GRANTABLE, 403, "scope_not_grantable", "This would grant scopes that you do not hold.")     \
    X(PROBLEM_ACCOUNT_SUSPENDED, 403, "account_suspended",                                                          \
      "The account is suspended: none of its keys and sessions is accepted. Ask the operator.")                     \
    X(PROBLEM_CSRF_FAILED, 403, "csrf_failed", "X-CSRF-Token is missing or wrong, or Origin is not the console's.") \
    X(PROBLEM_STEP_UP_REQUIRED, 403, "step_up_required",                                                            \
      "Confirm password and code (POST /v1/console/step_up), then try again.")                                      \
    X(PROBLEM_ROLE_NOT_PERMITTED, 403, "role_not_permitted", "Your role does not allow this.")                      \
    X(PROBLEM_CLIENT_CERTIFICATE_REQUIRED, 403, "client_certificate_required",                                      \
      "Connect with a client certificate of --internal-client-ca. Only /livez and /readyz need none.")              \
    X(PROBLEM_PASSWORD_CHANGE_REQUIRED, 403, "password_change_required",                                            \
      "Change the password first (POST /v1/console/password): somebody else has chosen it.")                        \
    X(PROBLEM_DELAY_NOT_PERMITTED, 403, "delay_not_permitted",                                                      \
      "A key can bring a scheduled revocation forward, but not delay or withdraw it. Do that in the console.")      \
    X(PROBLEM_NOT_FOUND, 404, "not_found", "Nothing is served at this path.")                                       \
    X(PROBLEM_API_KEY_NOT_FOUND, 404, "api_key_not_found", "There is no such API key.")                             \
    X(PROBLEM_DEVICE_KEY_NOT_FOUND, 404, "device_key_not_found", "There is no such device key.")                    \
    X(PROBLEM_SESSION_NOT_FOUND, 404, "session_not_found", "There is no such session, or it has ended.")            \
    X(PROBLEM_AUTHENTICATOR_NOT_FOUND, 404, "authenticator_not_found",                                              \
      "No new authenticator waits: begin again. One waits for 10 minutes, and for 20 tries.")                       \
    X(PROBLEM_ENROLMENT_NOT_FOUND, 404, "enrolment_not_found",                                                      \
      "No device waits with this code: it was mistyped, has expired or was decided. Start again on the device.")    \
    X(PROBLEM_USER_NOT_FOUND, 404, "user_not_found", "There is no such user.")                                      \
    X(PROBLEM_INVITATION_NOT_FOUND, 404, "invitation_not_found", "There is no such invitation.")                    \
    X(PROBLEM_LINK_NOT_FOUND, 404, "link_not_found",                                                                \
      "This link cannot be used. It has expired, was used or withdrawn, or is incomplete. Ask for another.")        \
    X(PROBLEM_METHOD_NOT_ALLOWED, 405, "method_not_allowed", "This method is not allowed here.")                    \
    X(PROBLEM_NOT_ACCEPTABLE, 406, "not_acceptable",                                                                \
      "Accept names none of application/json, text/csv and application/x-ndjson.")                                  \
    X(PROBLEM_KEY_LIMIT_REACHED, 409, "key_limit_reached",                                                          \
      "The account has reached its limit of active keys of this kind, or of keys made within a day. "               \
      "Revoke some, or wait.")                                                                                      \
    X(PROBLEM_ALREADY_REVOKED, 409, "already_revoked", "This key is revoked already.")                              \
    X(PROBLEM_ALREADY_REPLACED, 409, "already_replaced", "This key was replaced, and its successor is in use.")     \
    X(PROBLEM_USER_LIMIT_REACHED, 409, "user_limit_reached",                                                        \
      "The account has reached its limit of people and invitations. Remove some first.")                            \
    X(PROBLEM_LINK_NOT_STARTED, 409, "link_not_started",                                                            \
      "This browser has not started, another one has since, or 30 minutes are over. Start again.")                  \
    X(PROBLEM_LAST_OWNER, 409, "last_owner",                                                                        \
      "The account would be left without an owner who can sign in. Make somebody else an owner first.")             \
    X(PROBLEM_USER_EXISTS, 409, "user_exists", "A user with this email exists already.")                            \
    X(PROBLEM_REQUEST_TIMEOUT, 408, "request_timeout", "The request did not arrive in time.")                       \
    X(PROBLEM_BODY_TOO_LARGE, 413, "body_too_large", "The body is too large.")                                      \
    X(PROBLEM_URI_TOO_LONG, 414, "uri_too_long", "The request target is too long.")                                 \
    X(PROBLEM_UNSUPPORTED_MEDIA_TYPE, 415, "unsupported_media_type", "Send the body as application/json.")          \
    X(PROBLEM_EXPECTATION_FAILED, 417, "expectation_failed", "Only Expect: 100-continue is supported.")             \
    X(PROBLEM_RATE_LIMITED, 429, "rate_limited", "Too many attempts. Wait, then try again.")                        \
    X(PROBLEM_HEADERS_TOO_LARGE, 431, "headers_too_large", "The request head is too large.")                        \
    X(PROBLEM_INTERNAL_ERROR, 500, "internal_error", "Something went wrong on our side.")                           \
    X(PROBLEM_NOT_IMPLEMENTED, 501, "not_implemented", "This method is not supported.")                             \
    X(PROBLEM_STORE_UNAVAILABLE, 503, "store_unavailable", "The store did not answer. You may repeat the request.") \
    X(PROBLEM_OVERLOADED, 503, "overloaded", "The node is busy. Try again.")                                        \
    X(PROBLEM_SHUTTING_DOWN, 503, "shutting_down", "The node is shutting down. Try again.")                         \
    X(PROBLEM_HTTP_VERSION, 505, "http_version_not_supported", "Only HTTP/1.1 and HTTP/1.0 are supported.")

enum problem_code {
    PROBLEM_NONE,
#define PROBLEM_ENUM(id, status, code, message) id,
    PROBLEM_TABLE(PROBLEM_ENUM)
#undef PROBLEM_ENUM
        PROBLEM_COUNT
};

enum { PROBLEM_PARAM_BYTES = 64, PROBLEM_CHALLENGE_BYTES = 1024 };

/* One error as it will be answered. Zero it, then set code, and the rest as needed. */
struct problem {
    enum problem_code code;
    const char *message;             /* a constant; NULL: the catalogue's */
    char param[PROBLEM_PARAM_BYTES]; /* truncated if longer */
    bool has_param;                  /* a parameter may be called "" */
    const char *within;              /* where in the body that parameter is, such as "checks[3]"; NULL: at its top */
    const struct param_rule *rule;   /* what that parameter must be; NULL: the message says it */
    struct text value;               /* that it has instead, to be repeated if it may be; empty: not */
    const char *value_kind;          /* "an array", where it is not even of the right type; NULL: it is */
    const char *meant;               /* the nearest known name or word; NULL: none is near */
    const char *instead;             /* parameter_unknown: what else to do, a sentence; NULL: nothing is known */
    scope_set required_scopes;
    bool has_required_scopes; /* insufficient_scope: print an array, even an empty one. scope_not_grantable: the missing
                                 scopes, named in the message */
    bool session_realm;       /* a 401 of the console: WWW-Authenticate: Session */
    bool is_oauth;            /* to be answered in the form of RFC 6749 section 5.2 */
    uint32_t retry_after_s;   /* 0: the catalogue's, 1 s for every 503 */
    int status;               /* replaces the catalogue's, for gateways that understand few; 0: the catalogue's */
    const char *allow;        /* with method_not_allowed: "GET, HEAD" */
};

struct json;
struct json_writer;

struct problem problem_of(enum problem_code code);
enum problem_code problem_code_of(enum http_error error);
/* PROBLEM_NONE for KEY_ACCEPTED. */
enum problem_code problem_of_verdict(enum key_verdict verdict, enum key_kind kind);
/* param may be what a client sent for a name: one with a secret, or the start of one, is not said again. */
struct problem problem_param(enum problem_code code, struct text param);
/* A parameter is missing, or has another value than its rule allows. value: what it has, which must live until the
 * problem is answered; NULL or empty: none. rule: NULL: nothing more is said. */
struct problem problem_missing(const struct param_rule *rule, struct text param);
struct problem problem_value(const struct param_rule *rule, struct text param, struct text value);
struct problem problem_value_json(const struct param_rule *rule, struct text param, const struct json *value,
                                  bool is_wrong_type);
/* Whether a message may repeat what a client sent: nothing of a secret, and nothing that is hard to read. */
bool problem_may_repeat(struct text value);
int problem_status(enum problem_code code);
/* False of our failures (500, 503), which say nothing about what was asked for. */
bool problem_is_verdict(enum problem_code code);
const char *problem_code_text(enum problem_code code);
/* "authentication_error" and the like, by status. */
const char *problem_type(enum problem_code code);
const char *problem_message(const struct problem *p);
/* The JSON body of an error. origin: of the documentation to which it leads, or empty. */
void problem_print(const struct problem *p, struct text request_id, struct text origin, struct buf *out);
/* The members code, status and message, and perhaps required_scopes and www_authenticate: of a refusal that is a part
 * of an answer. */
void problem_put_refusal(const struct problem *p, struct json_writer *w);
/* Prints a problem as an OAuth error (RFC 6749 section 5.2; RFC 8628 section 3.5 adds slow_down). server_error and
 * temporarily_unavailable come from RFC 6749 section 4.1.2.1, because 5.2 has no equivalent. Appends the body, adds the
 * header Pragma, and returns the status. Clients read 400 and others of 4xx, and try again after 503. */
int problem_print_oauth(struct http_request *request, const struct problem *problem, struct buf *out);
/* The value of WWW-Authenticate (RFC 6750 section 3); empty if the problem has none. */
void problem_print_challenge(const struct problem *p, struct buf *out);

/* If bad_request is for a repeated or malformed Authorization, says what is wrong with it. */
void problem_blame_authorization(struct problem *problem, struct http_request *request);
/* Replies with status, body, and the headers WWW-Authenticate, Retry-After and Allow; counts the problem. */
void problem_reply(struct http_request *request, struct text origin, const struct problem *problem);

/* What the tests about people share: calls by an owner, and links. */
#pragma once
#include "fixture.h"

/* The owner's session (the fixture's user), stepped up. */
struct people {
    struct fixture fixture;
    struct fixture_session owner;
};
void people_start(struct people *people, size_t nodes, const char *const *more);
void people_stop(struct people *people);

/* A call by a session at a node, with its CSRF token. json may be NULL. Returns the status. */
int people_ask(const struct people *people, size_t node, const struct fixture_session *session, const char *method,
               const char *target, const char *json, struct http_answer *ret_answer);
/* Likewise; target: below /v1/console/users/<id>, with its slash or question mark, or empty. */
int people_change(const struct people *people, size_t node, const struct fixture_user *user, const char *method,
                  const char *target, const char *json, struct http_answer *ret_answer);
/* Another of the account's people, with a session that is stepped up. */
void people_add(struct people *people, const char *email, enum role role, struct fixture_user *ret_user,
                struct fixture_session *ret_session);

/* The code in an answer's url. */
void people_read_link(const struct http_answer *answer, char ret_code[FIXTURE_TOKEN_BYTES]);
/* An invitation by the owner at the first node. */
void people_invite(const struct people *people, const char *email, const char *role,
                   char ret_code[FIXTURE_TOKEN_BYTES]);
/* POST /v1/auth/join/begin or another target with the code alone. */
int people_open(const struct people *people, size_t node, const char *code, const char *target,
                struct http_answer *ret_answer);
/* POST /v1/auth/join/begin, and if that is 200, /v1/auth/join/start; user gets the totp_uri and the cookie. */
int people_begin(const struct people *people, size_t node, const char *code, struct fixture_user *ret_user,
                 struct http_answer *ret_answer);
/* The cookie's header field for POST /v1/auth/join; empty for who has none. */
void people_print_cookie(const struct fixture_user *user, char *ret_field, size_t size);
/* POST /v1/auth/join with the code that the authenticator shows. */
int people_join(const struct people *people, size_t node, const char *code, const struct fixture_user *user,
                const char *password, struct http_answer *ret_answer);
/* A key that the session's user made. */
void people_make_key(const struct people *people, const struct fixture_session *session, const char *mode,
                     struct fixture_key *ret_key);

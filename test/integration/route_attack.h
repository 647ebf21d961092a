/* What a tenant who means harm sends to a row of the route table. */
#pragma once
#include "api/routes.h"
#include "fixture.h"

/* Of each row. Where it has no id, body or parameters to differ in, some are the same. */
enum attack_shape {
    ATTACK_VALID,
    ATTACK_UNKNOWN,   /* well-formed, but nobody's; or a search that finds nothing */
    ATTACK_MALFORMED, /* what the row must refuse */
    ATTACK_LARGE,     /* the largest body, the widest report, or the longest target */
    ATTACK_SHAPES
};

enum attack_object {
    ATTACK_NOTHING,
    ATTACK_KEY,
    ATTACK_DEVICE_KEY,
    ATTACK_ENROLMENT,
    ATTACK_PERSON,
    ATTACK_INVITATION,
    ATTACK_SESSION,
    ATTACK_OBJECTS
};

/* The attacker's account. */
struct attack_scene {
    char account[ID_TEXT_BYTES];
    struct fixture_user owner, other_person; /* who cannot sign in */
    struct fixture_session session;          /* of the owner, and with a fresh step-up */
    struct fixture_key key;                  /* has leaked: what the attacker's requests bear */
    struct fixture_key victim;               /* another of the account's keys */
    char ids[ATTACK_OBJECTS][FIXTURE_TOKEN_BYTES];
};

struct attack_call {
    struct http_call call;
    char target[8192];
    char *body; /* what call.json or call.form is; NULL: none */
};

/* Adds the account, its people and its keys; mode: of the leaked one, which has every scope. The other objects are ids
 * that nobody has, unless the caller makes some. */
void attack_add_tenant(struct fixture *fixture, enum key_mode mode, struct attack_scene *ret_scene);
/* False: nobody has written down what this row takes. */
bool attack_make(const struct attack_scene *scene, const struct route *row, enum attack_shape shape,
                 struct attack_call *ret_attack);
void attack_free(struct attack_call *attack);
/* The row's requests cost a password hash, and so 128 MiB for a while. */
bool attack_hashes(const struct route *row);
const char *attack_method(const struct route *row);

/* {"ids":[…]} of as many keys as a request may name, which nobody has; the caller frees it. */
char *attack_print_unknown_keys(void);

enum { ATTACK_EVENTS = 30000 };
/* A search that looks at the whole trail and finds nothing. */
#define ATTACK_SEARCH "?limit=100&type=account.closed&ip=9.9.9.9"
/* Copies an event of the account until its trail takes so many slices to search. */
void attack_fill_trail(const struct fixture *fixture, const char *account);
/* VmHWM of a node, in KiB. */
unsigned long attack_peak_kib(const struct node *node);
/* What src/config/README.md says a node needs, and --waiting-max-bytes for requests and for responses. */
enum { ATTACK_NODE_MAX_KIB = (8 + 2 * 64) * 1024 };

/* One row for each mutating row of the route table: the request, what must be there before it, and what the end may
 * differ in when its answer was lost and the request repeated.
 *
 * Texts are templates. <key>, <totp> and the like stand for what the scene has made or learned (lost_scene.c). */
#pragma once
#include "api/routes.h"

#include <stddef.h>

enum lost_who { BY_ANYONE, BY_KEY, BY_OLD_KEY, BY_MADE_KEY, BY_OWNER, BY_PERSON, BY_SELF };

struct lost_ask {
    enum lost_who who;
    const char *method, *target, *json, *form;
    int status;
};

/* What is made before the request. */
enum {
    NEEDS_KEY = 1,    /* an API key, which may manage keys: <key>, <secret>, BY_OLD_KEY */
    NEEDS_DEVICE = 2, /* a device key: <device> */
    NEEDS_PERSON = 4, /* a developer, <person>, who is signed in and has made a key */
    NEEDS_SELF = 8,   /* somebody with a true password and two sessions: BY_SELF is one, <other> the other */
};

enum { LOST_FIRST_MAX = 3, LOST_MAY_MAX = 5 };

struct lost_row {
    enum http_method method;
    const char *path;
    enum lost_who who;
    const char *id;    /* of the path's {id} */
    const char *query; /* with its '?' */
    const char *json, *form;
    int status;
    unsigned needs;
    const struct lost_ask *first[LOST_FIRST_MAX];
    /* The repetition is answered with `status`, or, if the lost request was carried out, with this. */
    int again;
    const char *again_code; /* NULL: of a success */
    /* Differences of the end state: "+line" is there once more for each lost answer, "-line" is missing. An answer that
     * surely did not arrive may cause the former, one that may have arrived the latter ones too. */
    const char *undelivered[LOST_MAY_MAX], *delivered[LOST_MAY_MAX];
    /* Afterwards, with what the last answer gave. */
    const struct lost_ask *then;
    bool waits;  /* for a barrier */
    bool shows;  /* its first script changes what others see */
    bool killed; /* also tried at a node that is killed */
};

extern const struct lost_row LOST_ROWS[];
extern const size_t LOST_ROW_COUNT;

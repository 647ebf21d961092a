/* Keys and what is done with them: load.c makes and checks them, endings.c ends them, suspension.c suspends another
 * account's. */
#pragma once
#include "http.h"
#include "judge.h"
#include "load.h"
#include "trail.h"
#include "uses.h"
#include "schedule.h"

enum {
    SIM_TOGETHER_MAX = 24,
    SIM_AFTERLIFE_MS = 1800,
    SIM_CLUSTER_AFTERLIFE_MS = 4500, /* a primary that comes back is silent for two seconds */
    SIM_DONE = 200,
    SIM_CREATED = 201,
    SIM_REFUSED = 401,
    SIM_MISSING = 404,
    SIM_UNAVAILABLE = 503,
    SIM_CHANGE_WITHIN_MS = 8000,
    SIM_REQUEST_BYTES = 3072
};

/* And the number of the request for it. */
#define SIM_KEY_NAME "simulated "
#define SIM_NS_PER_MS UINT64_C(1000000)

struct sim_life;

struct sim_checker {
    struct sim_event next;
    struct sim_life *life;
    struct sim_node *node;
};

/* A key, from its making until it has been dead for a while. */
struct sim_life {
    struct list of_lives;
    char id[SIM_ID_BYTES], secret[SIM_SECRET_BYTES], name[24];
    struct sim_verdict verdict;
    bool is_quiet; /* not checked from its end on until that is answered, for such checks could mend what is wrong */
    bool may_be_lost;
    bool is_scheduled;                     /* its end, or somebody has asked for that: what it makes inherits it */
    unsigned open;                         /* requests under way */
    uint64_t made_ns, told_ns, retires_ns; /* told: of its end. 0: not yet */
    uint64_t due_ns;                       /* when it is to end, as somebody asked; 0: nobody did */
    bool is_asked;                         /* somebody has asked that it end at once */
    struct sim_uses *uses;
    struct sim_trail *trail;
    struct sim_event death;
    struct sim_checker checkers[SIM_NODES_MAX];
};

/* Those that are revoked by one request. */
struct sim_company {
    size_t count;
    struct sim_life *lives[SIM_TOGETHER_MAX];
};

struct sim_asking {
    struct sim_life *life; /* NULL: a creation by the manager, or a list */
    struct sim_node *node;
    struct sim_company *company;
    bool is_change;  /* it may take longer */
    uint64_t due_ns; /* when the key is to end */
    uint64_t number; /* of a creation */
    void *arg;
};

extern struct sim_deployment *sim_load_of;
/* How long a key is checked once it is dead. */
uint64_t sim_afterlife_ns(void);
extern struct list sim_lives;

struct sim_node *sim_draw_node(void);
/* body: NULL for none. late_ns: of its last bytes. `answered` frees the struct sim_asking that it gets, which is a
 * copy. */
void sim_load_ask(const struct sim_asking *asking, const char *method, const char *target, const char *secret,
                  const char *body, uint64_t late_ns, void (*answered)(void *arg, const struct sim_answer *answer));
/* by: whose key asks for it; NULL: the manager's. */
void sim_load_create(struct sim_node *node, struct sim_life *by, uint64_t late_ns);
/* Checks it at once, or a little later, at each node. */
void sim_life_check_soon(struct sim_life *life);
/* It dies: somebody asks for that, in one way or another. */
void sim_life_end(struct sim_event *death);

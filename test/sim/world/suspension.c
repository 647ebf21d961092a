#include "suspension.h"
#include "base/check.h"
#include "load_internal.h"
#include "trace.h"
#include <stdlib.h>

enum {
    SUBJECT = 1,
    CHECK_EVERY_MS = 600,
    OFTENER = 4,
    LASTS_MOST_MS = 4000,
    AGAIN_MS = 200,
    HEARD_WITHIN_MS = 500,
    MORE_KEYS = 2
};

static struct sim_deployment *of;
static struct sim_verdict verdict; /* revoked: suspended */
static struct sim_checker checkers[SIM_NODES_MAX];
static struct sim_event turn;
static bool must_suspend;
static uint64_t resumed_ns;                         /* 0: it is suspended, or about to be */
static char more_keys[MORE_KEYS][SIM_SECRET_BYTES]; /* of the account, beside its manager's */
static unsigned more_count;

/* Keys */

const struct sim_verdict *sim_suspension_verdict(void)
{
    return &verdict;
}

const char *sim_suspension_secret(void)
{
    const uint64_t which = sim_draw_below(more_count + 1);

    return which == more_count ? of->accounts[SUBJECT].manager : more_keys[which];
}

static void key_made(void *arg, const struct sim_answer *answer)
{
    if (answer->status == SIM_CREATED)
        CHECK(sim_http_copy_after(answer->body, "\"secret\":\"", more_keys[more_count++], SIM_SECRET_BYTES));
    free(arg);
}

static void make_more_keys(void)
{
    more_count = 0;
    for (unsigned i = 0; i < MORE_KEYS; i++)
        sim_load_ask(&(struct sim_asking){.node = &of->nodes[0]}, "POST", "/v1/api_keys", of->accounts[SUBJECT].manager,
                     "{\"name\":\"more\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", 0, key_made);
}

/* Checks */

static void check_answered(void *arg, const struct sim_answer *answer)
{
    struct sim_asking *asking = arg;

    sim_judge_use(&verdict, "the suspended account's key", asking->node->host->name, answer->begun_ns,
                  answer->status == SIM_DONE);
    if (resumed_ns > 0 && answer->asked_ns > resumed_ns + HEARD_WITHIN_MS * SIM_NS_PER_MS &&
        sim_judge_is_calm(answer->asked_ns) && answer->status != SIM_DONE)
        sim_judge_violation("%s answers %d to a key of an account that was resumed", asking->node->host->name,
                            answer->status);
    free(asking);
}

static void on_check(struct sim_event *next)
{
    struct sim_checker *checker = LIST_ENTRY(next, struct sim_checker, next);
    uint64_t mean_ms;

    if (sim_load_is_stopped())
        return;
    sim_load_ask(&(struct sim_asking){.node = checker->node}, "GET", "/v1/whoami", sim_suspension_secret(), NULL, 0,
                 check_answered);
    mean_ms = verdict.revoked_ns > 0 ? CHECK_EVERY_MS / OFTENER : CHECK_EVERY_MS;
    sim_event_in(next, 1 + sim_draw_below(2 * mean_ms * SIM_NS_PER_MS));
}

/* Commands */

static void ended(void *arg, int code)
{
    (void)arg;
    if (code != 0) {
        sim_event_in(&turn, AGAIN_MS * SIM_NS_PER_MS);
        return;
    }
    if (must_suspend) {
        verdict.revoked_ns = sim_now_ns();
        sim_trace("clients", "the account is suspended");
        for (unsigned i = 0; i < of->node_count; i++)
            sim_event_in(&checkers[i].next, 1);
    } else {
        resumed_ns = sim_now_ns();
    }
    must_suspend = !must_suspend;
    sim_event_in(&turn, sim_draw_between(1, LASTS_MOST_MS) * SIM_NS_PER_MS);
}

static void on_turn(struct sim_event *event)
{
    (void)event;
    if (sim_load_is_stopped())
        return;
    verdict.revoked_ns = resumed_ns = 0;
    sim_command_start(
        of, (const char *const[]){"account", must_suspend ? "suspend" : "resume", of->accounts[SUBJECT].id, NULL},
        ended, NULL);
}

void sim_suspension_start(struct sim_deployment *deployment)
{
    of = deployment;
    must_suspend = true;
    verdict = (struct sim_verdict){0};
    make_more_keys();
    resumed_ns = 0;
    turn = (struct sim_event){.run = on_turn};
    sim_event_in(&turn, sim_draw_between(1, LASTS_MOST_MS) * SIM_NS_PER_MS);
    for (unsigned i = 0; i < of->node_count; i++) {
        checkers[i] = (struct sim_checker){.next.run = on_check, .node = &of->nodes[i]};
        sim_event_in(&checkers[i].next, 1);
    }
}

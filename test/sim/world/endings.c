/* How keys end: each once by itself, at two nodes at once, with others in a list or as many requests at once, or at a
 * time that is told before. */
#include "base/clock.h"
#include "base/mem.h"
#include "load_internal.h"
#include "trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOGETHER_ONE_IN = 16,
    SCHEDULED_ONE_IN = 6,
    TWICE_ONE_IN = 3,
    SUCCESSOR_ONE_IN = 4,
    LATE_MOST_MS = 120,
    AGAIN_MOST_MS = 300,
    AHEAD_LEAST_MS = 100,
    AHEAD_MOST_MS = 2000,
    TARGET_BYTES = 128,
    BODY_BYTES = SIM_TOGETHER_MAX * (SIM_ID_BYTES + 4) + 16,
};

/* Asked again, unless the key was lost with the store's last changes. */
static void not_told(struct sim_life *life, int status)
{
    if (status == SIM_MISSING && life->may_be_lost)
        life->retires_ns = sim_now_ns();
    else if (life->told_ns == 0 && life->retires_ns == 0)
        sim_event_in(&life->death, sim_draw_between(1, AGAIN_MOST_MS) * SIM_NS_PER_MS);
}

static void told(struct sim_life *life, const struct sim_answer *answer, uint64_t due_ns)
{
    const uint64_t from_ns = due_ns > answer->answered_ns ? due_ns : answer->answered_ns;

    sim_judge_revoked(&life->verdict, answer->asked_ns, answer->answered_ns, from_ns);
    life->told_ns = answer->answered_ns;
    sim_trail_ended(life->trail);
    life->retires_ns = from_ns + sim_afterlife_ns();
    if (from_ns == answer->answered_ns)
        sim_life_check_soon(life);
}

/* Those that are to be asked again are counted alone. */
static void trace_end(const struct sim_life *life, const struct sim_node *node, const struct sim_answer *answer,
                      const char *kind)
{
    static const char FORMAT[] = "%s: %sits end, asked at %s, is answered %d";

    if (answer->status == 0)
        sim_trace_aside("ends not answered", "clients", FORMAT, life->name, kind, node->host->name, answer->status);
    else if (answer->status == SIM_UNAVAILABLE)
        sim_trace_aside("ends answered 503", "clients", FORMAT, life->name, kind, node->host->name, answer->status);
    else
        sim_trace("clients", FORMAT, life->name, kind, node->host->name, answer->status);
}

/* A key that was made is not lost. */
static void judge_status(const struct sim_life *life, const struct sim_node *node, const struct sim_answer *answer)
{
    if (answer->status == SIM_MISSING && !life->may_be_lost)
        sim_judge_violation("%s does not know %s, which was made", node->host->name, life->name);
    sim_judge_answer("an end", node->host->name, answer->asked_ns, answer->status);
}

static void ended(struct sim_life *life, const struct sim_node *node, const struct sim_answer *answer, uint64_t due_ns)
{
    trace_end(life, node, answer, "");
    if (answer->status == SIM_DONE)
        told(life, answer, due_ns);
    else
        not_told(life, answer->status);
    judge_status(life, node, answer);
}

static void revoke_answered(void *arg, const struct sim_answer *answer)
{
    struct sim_asking *asking = arg;

    asking->life->open--;
    ended(asking->life, asking->node, answer, 0);
    free(asking);
}

static void revoke_at(struct sim_life *life, struct sim_node *node)
{
    char target[TARGET_BYTES];

    snprintf(target, sizeof target, "/v1/api_keys/%s", life->id);
    life->verdict.is_tried = life->is_asked = true;
    sim_load_ask(&(struct sim_asking){.life = life, .node = node, .is_change = true}, "DELETE", target,
                 sim_load_of->accounts[0].manager, NULL, 0, revoke_answered);
}

/* Ahead of time. Redis and this program go by one calendar; where that has been set, the time of a key that is
 * scheduled then is by the wrong one (docker/redis/README.md), and the judge could not say when it ends. */

static unsigned open_schedules;
static bool are_schedules_held;

bool sim_load_hold_schedules(bool holds)
{
    if (holds && open_schedules > 0)
        return false;
    are_schedules_held = holds;
    return true;
}

static void schedule_answered(void *arg, const struct sim_answer *answer)
{
    struct sim_asking *asking = arg;
    struct sim_life *life = asking->life;

    life->open--;
    open_schedules--;
    trace_end(life, asking->node, answer, "the time of ");
    if (answer->status == SIM_DONE)
        told(life, answer, asking->due_ns);
    else
        not_told(life, answer->status);
    judge_status(life, asking->node, answer);
    free(asking);
}

static void schedule(struct sim_life *life, struct sim_node *node)
{
    char target[TARGET_BYTES], body[64], at[CLOCK_RFC3339_BYTES];
    const uint64_t ahead_ms = sim_draw_between(AHEAD_LEAST_MS, AHEAD_MOST_MS);

    snprintf(target, sizeof target, "/v1/api_keys/%s/scheduled_revocation", life->id);
    life->is_scheduled = true;
    clock_print_rfc3339(clock_wall_ms() + (int64_t)ahead_ms, at);
    snprintf(body, sizeof body, "{\"revoke_at\":\"%s\"}", at);
    life->verdict.is_tried = true;
    open_schedules++;
    life->due_ns = sim_now_ns() + (ahead_ms + 1) * SIM_NS_PER_MS;
    sim_load_ask(&(struct sim_asking){.life = life, .node = node, .due_ns = life->due_ns}, "PUT", target,
                 sim_load_of->accounts[0].manager, body, 0, schedule_answered);
}

/* Together */

static size_t find_company(struct sim_life *first, struct sim_life **ret_lives, size_t most)
{
    size_t count = 0;

    ret_lives[count++] = first;
    for (struct list *node = sim_lives.next; node != &sim_lives && count < most; node = node->next) {
        struct sim_life *life = LIST_ENTRY(node, struct sim_life, of_lives);

        if (!life->verdict.is_tried && life != first)
            ret_lives[count++] = life;
    }
    return count;
}

static void list_answered(void *arg, const struct sim_answer *answer)
{
    struct sim_asking *asking = arg;
    struct sim_company *company = asking->company;

    for (size_t i = 0; i < company->count; i++) {
        struct sim_life *life = company->lives[i];
        struct sim_answer meant = *answer;
        const char *missing = strstr(answer->body, "\"not_found\""), *found = strstr(answer->body, life->id);

        if (answer->status == SIM_DONE && (!found || (missing && found > missing)))
            meant.status = SIM_MISSING;
        life->open--;
        ended(life, asking->node, &meant, 0);
    }
    free(company);
    free(asking);
}

static void revoke_list(struct sim_node *node, const struct sim_company *company)
{
    struct sim_company *copy = mem_alloc(sizeof *copy);
    char body[BODY_BYTES];
    int len = snprintf(body, sizeof body, "{\"ids\":[");

    *copy = *company;
    for (size_t i = 0; i < company->count; i++) {
        company->lives[i]->open++;
        company->lives[i]->verdict.is_tried = company->lives[i]->is_asked = true;
        len += snprintf(body + len, sizeof body - (size_t)len, "%s\"%s\"", i > 0 ? "," : "", company->lives[i]->id);
    }
    snprintf(body + len, sizeof body - (size_t)len, "]}");
    sim_load_ask(&(struct sim_asking){.node = node, .company = copy}, "POST", "/v1/api_keys/revoke",
                 sim_load_of->accounts[0].manager, body, 0, list_answered);
}

static void revoke_together(struct sim_life *first)
{
    struct sim_company company;
    struct sim_node *node = sim_draw_node();

    company.count = find_company(first, company.lives, (size_t)sim_draw_between(2, SIM_TOGETHER_MAX));
    for (size_t i = 0; i < company.count; i++)
        sim_event_cancel(&company.lives[i]->death);
    if (sim_draw_below(2) == 0) {
        revoke_list(node, &company);
        return;
    }
    for (size_t i = 0; i < company.count; i++)
        revoke_at(company.lives[i], node);
}

/* The key asks for another one, and that request's end comes about when its own end is answered. */
static void begin_successor(struct sim_life *life)
{
    struct sim_node *node = sim_draw_node();

    if (!life->is_quiet && sim_draw_below(SUCCESSOR_ONE_IN) == 0)
        sim_load_create(node, life, sim_draw_between(1, LATE_MOST_MS) * SIM_NS_PER_MS);
}

void sim_life_end(struct sim_event *death)
{
    struct sim_life *life = LIST_ENTRY(death, struct sim_life, death);
    const bool is_first = !life->verdict.is_tried;

    if (life->told_ns > 0 || sim_load_is_stopped())
        return;
    begin_successor(life);
    if (is_first && sim_draw_below(TOGETHER_ONE_IN) == 0) {
        revoke_together(life);
    } else if (is_first && sim_draw_below(SCHEDULED_ONE_IN) == 0 && !are_schedules_held) {
        schedule(life, sim_draw_node());
    } else {
        revoke_at(life, sim_draw_node());
        if (sim_draw_below(TWICE_ONE_IN) == 0)
            revoke_at(life, sim_draw_node());
        else if (sim_draw_below(TWICE_ONE_IN) == 0)
            sim_event_in(death, sim_draw_between(1, AGAIN_MOST_MS) * SIM_NS_PER_MS);
    }
}

#include "base/check.h"
#include "base/mem.h"
#include "faults.h"
#include "load_internal.h"
#include "orphans.h"
#include "suspension.h"
#include "trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIVES_MAX = 256,
    LIFE_LEAST_MS = 20,
    LIFE_MOST_MS = 4000,
    AFTERLIFE_MS = SIM_AFTERLIFE_MS, /* in which it is checked more often, so many times: */
    OFTENER = 4,
    CHECK_EVERY_MS = 1000,
    QUIET_ONE_IN = 2,
    LATE_ONE_IN = 20,
    LATE_MOST_MS = 150,
    CHECK_WITHIN_MS = 3000,
    CREATION_BYTES = 160,
    EARLY_MOST_MS = 300, /* the product says 200 */
};

struct sim_deployment *sim_load_of;
struct list sim_lives = {&sim_lives, &sim_lives};

static uint64_t create_every_ns;
static struct sim_event creation;
static unsigned life_count;
static uint64_t made, asked_for;
static bool is_stopped;
static uint64_t lost_from_ns, lost_until_ns; /* what was made between may be lost */

struct sim_node *sim_draw_node(void)
{
    return &sim_load_of->nodes[sim_draw_below(sim_load_of->node_count)];
}

void sim_load_ask(const struct sim_asking *asking, const char *method, const char *target, const char *secret,
                  const char *body, uint64_t late_ns, void (*answered)(void *arg, const struct sim_answer *answer))
{
    struct sim_asking *copy = mem_alloc(sizeof *copy);
    char bytes[SIM_REQUEST_BYTES];
    int len = snprintf(bytes, sizeof bytes, "%s %s HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n", method,
                       target, secret);

    if (body)
        len += snprintf(bytes + len, sizeof bytes - (size_t)len,
                        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    else
        len += snprintf(bytes + len, sizeof bytes - (size_t)len, "\r\n");
    CHECK((size_t)len < sizeof bytes);
    *copy = *asking;
    if (copy->life)
        copy->life->open++;
    sim_http_ask(&(struct sim_request){
        .from = sim_load_of->clients,
        .to = asking->node->host,
        .port = SIM_PORT,
        .bytes = bytes,
        .len = (size_t)len,
        .late_ns = late_ns,
        .within_ns = (body || asking->is_change ? SIM_CHANGE_WITHIN_MS : CHECK_WITHIN_MS) * SIM_NS_PER_MS,
        .answered = answered,
        .arg = copy});
}

/* Checks */

static void life_free(struct sim_life *life)
{
    for (unsigned i = 0; i < sim_load_of->node_count; i++)
        sim_event_cancel(&life->checkers[i].next);
    sim_event_cancel(&life->death);
    list_remove(&life->of_lives);
    life_count--;
    free(life);
}

/* Once nothing is under way. */
static bool is_retired(const struct sim_life *life)
{
    return life->retires_ns > 0 && sim_now_ns() >= life->retires_ns && life->open == 0;
}

/* Of its end, only a time was said, and that has not come. */
static void judge_early(const struct sim_life *life, const struct sim_node *node, const struct sim_answer *answer)
{
    if (answer->status == SIM_REFUSED && life->due_ns > 0 && !life->is_asked && !life->may_be_lost &&
        answer->answered_ns + EARLY_MOST_MS * SIM_NS_PER_MS < life->due_ns)
        sim_judge_violation("%s refuses %s %.6f s before its end", node->host->name, life->name,
                            (double)(life->due_ns - answer->answered_ns) / 1e9);
}

/* Whatever becomes of Redis, a node that runs and can be reached answers. */
static void judge_silence(const struct sim_node *node, const struct sim_answer *answer)
{
    if (answer->status == 0 && answer->answered_ns - answer->asked_ns >= CHECK_WITHIN_MS * SIM_NS_PER_MS &&
        sim_faults_spared(node, answer->asked_ns))
        sim_judge_violation("%s has not answered a check within %d ms", node->host->name, CHECK_WITHIN_MS);
}

static void check_answered(void *arg, const struct sim_answer *answer)
{
    struct sim_asking *asking = arg;
    struct sim_life *life = asking->life;

    life->open--;
    sim_judge_check(&life->verdict, life->name, asking->node->host->name, answer->begun_ns, answer->status);
    judge_early(life, asking->node, answer);
    judge_silence(asking->node, answer);
    sim_judge_answer("a check", asking->node->host->name, answer->asked_ns, answer->status);
    sim_uses_note(life->uses, answer->status, answer->asked_ns);
    free(asking);
}

uint64_t sim_afterlife_ns(void)
{
    return (sim_load_of->store == SIM_STORE_CLUSTER ? SIM_CLUSTER_AFTERLIFE_MS : SIM_AFTERLIFE_MS) * SIM_NS_PER_MS;
}

/* Often for a while after the end. */
static uint64_t draw_pause(const struct sim_life *life)
{
    const bool is_often =
        life->verdict.revoked_ns > 0 && sim_now_ns() < life->verdict.revoked_ns + AFTERLIFE_MS * SIM_NS_PER_MS;
    const uint64_t mean_ms = is_often ? CHECK_EVERY_MS / OFTENER : CHECK_EVERY_MS;

    return 1 + sim_draw_below(2 * mean_ms * SIM_NS_PER_MS);
}

static void on_check(struct sim_event *next)
{
    struct sim_checker *checker = LIST_ENTRY(next, struct sim_checker, next);
    struct sim_life *life = checker->life;
    const struct sim_asking asking = {.life = life, .node = checker->node};

    if (is_retired(life)) {
        life_free(life);
        return;
    }
    if (is_stopped)
        return;
    if (!life->is_quiet || !life->verdict.is_tried || life->verdict.revoked_ns > 0)
        sim_load_ask(&asking, "GET", "/v1/whoami", life->secret, NULL,
                     sim_draw_below(LATE_ONE_IN) == 0 ? sim_draw_between(1, LATE_MOST_MS) * SIM_NS_PER_MS : 0,
                     check_answered);
    sim_event_in(&checker->next, draw_pause(life));
}

void sim_life_check_soon(struct sim_life *life)
{
    for (unsigned i = 0; i < sim_load_of->node_count; i++)
        sim_event_in(&life->checkers[i].next,
                     1 + (life->is_quiet ? sim_draw_below(1 + sim_draw_below(2) * 150 * SIM_NS_PER_MS) : 0));
}

/* Creations */

/* A key has the end of the one that made it, if that was told before. */
static void inherit(struct sim_life *life, const struct sim_life *by, const struct sim_answer *answer)
{
    if (!by || !by->is_scheduled)
        return;
    life->is_scheduled = life->verdict.is_tried = true;
    if (by->told_ns > 0 && by->told_ns < answer->asked_ns)
        life->verdict.revoked_ns = by->verdict.revoked_ns;
}

/* Whether it was answered by a master that has been replaced, and the new one does not know it. That may happen where a
 * replica may take over that need not have acknowledged it. */
static bool is_lost(const struct sim_life *life)
{
    const struct sim_redises *redises = &sim_load_of->redises;
    char key[SIM_ID_BYTES + 32];

    if (sim_load_of->store != SIM_STORE_SENTINEL || sim_load_of->min_replicas >= SIM_WATCHED - 1 ||
        !sim_server_is_up(redises->servers[redises->master]))
        return false;
    snprintf(key, sizeof key, "chatelaine:id:%s", life->id);
    return !sim_server_has(redises->servers[redises->master], key);
}

static void on_switched(void)
{
    for (struct list *node = sim_lives.next; node != &sim_lives; node = node->next) {
        struct sim_life *life = LIST_ENTRY(node, struct sim_life, of_lives);

        if (!is_lost(life))
            continue;
        life->may_be_lost = life->verdict.is_tried = true;
        sim_trace("clients", "%s is lost with a master that was replaced", life->name);
    }
}

static void life_begin(const struct sim_life *by, const struct sim_answer *answer)
{
    struct sim_life *life = mem_alloc(sizeof *life);

    *life = (struct sim_life){
        .is_quiet = sim_draw_below(QUIET_ONE_IN) == 0, .death.run = sim_life_end, .made_ns = answer->answered_ns};
    CHECK(sim_http_copy_after(answer->body, "\"id\":\"", life->id, sizeof life->id) &&
          sim_http_copy_after(answer->body, "\"secret\":\"", life->secret, sizeof life->secret));
    snprintf(life->name, sizeof life->name, "key %llu", (unsigned long long)++made);
    life->uses = sim_uses_of(life->id, life->name);
    life->may_be_lost = sim_load_may_be_lost(answer->asked_ns, answer->answered_ns) || is_lost(life);
    life->verdict.is_tried = life->may_be_lost;
    life->trail = sim_trail_of(life->id, life->name, life->made_ns, life->may_be_lost);
    inherit(life, by, answer);
    list_append(&sim_lives, &life->of_lives);
    life_count++;
    sim_counts.created++;
    sim_event_in(&life->death, sim_draw_between(LIFE_LEAST_MS, LIFE_MOST_MS) * SIM_NS_PER_MS);
    for (unsigned i = 0; i < sim_load_of->node_count; i++) {
        life->checkers[i] = (struct sim_checker){.next.run = on_check, .life = life, .node = &sim_load_of->nodes[i]};
        sim_event_in(&life->checkers[i].next, 1 + sim_draw_below(CHECK_EVERY_MS / 8 * SIM_NS_PER_MS));
    }
    sim_trace("clients", "%s is made", life->name);
}

static void create_answered(void *arg, const struct sim_answer *answer)
{
    struct sim_asking *asking = arg;
    struct sim_life *by = asking->life;

    if (by) {
        by->open--;
        sim_judge_use(&by->verdict, by->name, asking->node->host->name, answer->begun_ns,
                      answer->status == SIM_CREATED);
        /* Accepted with its head, the key may have ended before its body came. */
        sim_uses_note(by->uses, answer->status == SIM_REFUSED ? 0 : answer->status, answer->asked_ns);
    }
    if (answer->status == SIM_UNAVAILABLE)
        sim_orphans_note(asking->node, asking->number);
    sim_judge_answer("a creation", asking->node->host->name, answer->asked_ns, answer->status);
    free(asking);
    if (answer->status == SIM_CREATED)
        life_begin(by, answer);
    else if (!by && answer->status != 0 && answer->status != 503)
        sim_judge_violation("a creation is answered %d: %.80s", answer->status, answer->body);
}

void sim_load_create(struct sim_node *node, struct sim_life *by, uint64_t late_ns)
{
    const struct sim_asking asking = {.life = by, .node = node, .number = ++asked_for};
    char body[CREATION_BYTES];

    snprintf(body, sizeof body,
             "{\"name\":\"" SIM_KEY_NAME "%llu\",\"mode\":\"test\",\"scopes\":[\"keys:manage\",\"patients:read\"]}",
             (unsigned long long)asking.number);
    sim_load_ask(&asking, "POST", "/v1/api_keys", by ? by->secret : sim_load_of->accounts[0].manager, body, late_ns,
                 create_answered);
}

static void on_creation(struct sim_event *event)
{
    if (is_stopped)
        return;
    if (life_count < LIVES_MAX)
        sim_load_create(sim_draw_node(), NULL, 0);
    sim_event_in(event, 1 + sim_draw_below(2 * create_every_ns));
}

void sim_load_stop(void)
{
    is_stopped = true;
}

bool sim_load_is_stopped(void)
{
    return is_stopped;
}

bool sim_load_may_be_lost(uint64_t asked_ns, uint64_t answered_ns)
{
    return answered_ns >= lost_from_ns && asked_ns <= lost_until_ns;
}

void sim_load_lost(uint64_t from_ns)
{
    lost_from_ns = from_ns;
    lost_until_ns = sim_now_ns();
    sim_trail_lost(from_ns);
    for (struct list *node = sim_lives.next; node != &sim_lives; node = node->next) {
        struct sim_life *life = LIST_ENTRY(node, struct sim_life, of_lives);

        if (life->made_ns >= from_ns)
            life->may_be_lost = life->verdict.is_tried = true;
    }
}

/* Each key is checked at each node so often while it lives, and then while it is dead. */
void sim_load_start(struct sim_deployment *deployment, unsigned checks_per_s)
{
    static const uint64_t CHECKED_MS = (LIFE_LEAST_MS + LIFE_MOST_MS) / 2 + OFTENER * AFTERLIFE_MS;

    CHECK(list_empty(&sim_lives));
    sim_load_of = deployment;
    deployment->redises.switched = on_switched;
    life_count = 0;
    is_stopped = false;
    made = asked_for = 0;
    sim_orphans_begin();
    sim_uses_begin();
    sim_trail_begin();
    lost_from_ns = UINT64_MAX;
    lost_until_ns = 0;
    create_every_ns = CHECKED_MS * (SIM_NS_PER_MS * 1000 / CHECK_EVERY_MS) / checks_per_s;
    creation = (struct sim_event){.run = on_creation};
    sim_event_in(&creation, 1);
    sim_suspension_start(deployment);
}

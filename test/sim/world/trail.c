#include "trail.h"
#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"
#include "http.h"
#include "judge.h"
#include "pages.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_trail {
    struct list of_all;
    char id[SIM_ID_BYTES], name[24];
    uint64_t made_ns;
    bool may_be_lost, is_ended;
    unsigned created, revoked; /* events */
};

static struct list all = {&all, &all};

void sim_trail_begin(void)
{
    struct list *node;

    while ((node = list_take(&all)))
        free(LIST_ENTRY(node, struct sim_trail, of_all));
}

struct sim_trail *sim_trail_of(const char *id, const char *name, uint64_t made_ns, bool may_be_lost)
{
    struct sim_trail *trail = mem_alloc(sizeof *trail);

    *trail = (struct sim_trail){.made_ns = made_ns, .may_be_lost = may_be_lost};
    snprintf(trail->id, sizeof trail->id, "%s", id);
    snprintf(trail->name, sizeof trail->name, "%s", name);
    list_append(&all, &trail->of_all);
    return trail;
}

void sim_trail_lost(uint64_t from_ns)
{
    for (struct list *node = all.next; node != &all; node = node->next) {
        struct sim_trail *trail = LIST_ENTRY(node, struct sim_trail, of_all);

        trail->may_be_lost |= trail->made_ns >= from_ns;
    }
}

void sim_trail_ended(struct sim_trail *trail)
{
    trail->is_ended = true;
}

static void note(const char *type, const char *target)
{
    for (struct list *node = all.prev; node != &all; node = node->prev) {
        struct sim_trail *trail = LIST_ENTRY(node, struct sim_trail, of_all);

        if (strcmp(trail->id, target) != 0)
            continue;
        trail->created += strcmp(type, "api_key.created") == 0;
        trail->revoked += strcmp(type, "api_key.revoked") == 0;
        return;
    }
}

/* Of an event `id` comes first, then `type`, then `target`. */
static void read_rows(const char *body, char ret_last[SIM_ID_BYTES])
{
    static const char ID[] = "\"id\":\"evt_", TYPE[] = "\"type\":\"", TARGET[] = "\"target\":\"";
    char type[SIM_ID_BYTES], target[SIM_ID_BYTES];

    for (const char *row = strstr(body, ID); row; row = strstr(row + 1, ID)) {
        CHECK(sim_http_copy_after(row, "\"id\":\"", ret_last, SIM_ID_BYTES));
        if (sim_http_copy_after(row, TYPE, type, sizeof type) &&
            sim_http_copy_after(row, TARGET, target, sizeof target))
            note(type, target);
    }
}

static void judge(const struct sim_trail *trail)
{
    if (trail->created > 1 || (trail->created == 0 && !trail->may_be_lost))
        sim_judge_violation("%s was made once, and the trail says %u times", trail->name, trail->created);
    if (trail->revoked > 1 || (trail->revoked == 0 && trail->is_ended && !trail->may_be_lost))
        sim_judge_violation("%s has ended, and the trail says so %u times", trail->name, trail->revoked);
}

void sim_trail_judge(struct sim_deployment *deployment, struct sim_node *node)
{
    sim_pages_read(deployment, node, "/v1/audit?limit=100", read_rows);
    for (struct list *of_all = all.next; of_all != &all; of_all = of_all->next)
        judge(LIST_ENTRY(of_all, struct sim_trail, of_all));
}

#include "uses.h"
#include "base/check.h"
#include "base/mem.h"
#include "judge.h"
#include "load_internal.h"
#include "pages.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_uses {
    struct list of_all;
    char id[SIM_ID_BYTES], name[24];
    uint64_t accepted, unknown; /* unknown: they may have been */
    uint64_t first_ns;
    bool is_told; /* on some page */
    uint64_t counted;
};

static struct list all = {&all, &all};

void sim_uses_begin(void)
{
    struct list *node;

    while ((node = list_take(&all)))
        free(LIST_ENTRY(node, struct sim_uses, of_all));
}

struct sim_uses *sim_uses_of(const char *id, const char *name)
{
    struct sim_uses *uses = mem_alloc(sizeof *uses);

    *uses = (struct sim_uses){0};
    snprintf(uses->id, sizeof uses->id, "%s", id);
    snprintf(uses->name, sizeof uses->name, "%s", name);
    list_append(&all, &uses->of_all);
    return uses;
}

void sim_uses_note(struct sim_uses *uses, int status, uint64_t asked_ns)
{
    if (uses->first_ns == 0)
        uses->first_ns = asked_ns;
    uses->accepted += status == SIM_DONE || status == SIM_CREATED;
    uses->unknown += status != SIM_DONE && status != SIM_CREATED && status != SIM_REFUSED;
}

/* Reading */

/* Rows and those of clients come in the same order, the newest first, but some are missing in either. */
static struct sim_uses *find(const char *id)
{
    for (struct list *node = all.prev; node != &all; node = node->prev)
        if (strcmp(LIST_ENTRY(node, struct sim_uses, of_all)->id, id) == 0)
            return LIST_ENTRY(node, struct sim_uses, of_all);
    return NULL;
}

static void read_rows(const char *body, char ret_last[SIM_ID_BYTES])
{
    static const char KEY[] = "\"key\":\"", REQUESTS[] = "\"requests\":";

    for (const char *row = strstr(body, KEY); row; row = strstr(row + 1, KEY)) {
        const char *requests = strstr(row, REQUESTS);
        struct sim_uses *uses;

        CHECK(requests && sim_http_copy_after(row, KEY, ret_last, SIM_ID_BYTES));
        uses = find(ret_last);
        if (!uses)
            continue;
        uses->is_told = true;
        uses->counted = strtoull(requests + strlen(REQUESTS), NULL, 10);
    }
}

/* Judging */

static void judge(const struct sim_uses *uses, uint64_t since_ns)
{
    if (!uses->is_told)
        return;
    if (uses->counted > uses->accepted + uses->unknown)
        sim_judge_violation("%s was used %llu times, and perhaps %llu more, and counts as used %llu times", uses->name,
                            (unsigned long long)uses->accepted, (unsigned long long)uses->unknown,
                            (unsigned long long)uses->counted);
    if (uses->first_ns >= since_ns && uses->counted < uses->accepted)
        sim_judge_violation("%s was used %llu times, and nothing was wrong, but counts as used %llu times", uses->name,
                            (unsigned long long)uses->accepted, (unsigned long long)uses->counted);
}

void sim_uses_judge(struct sim_deployment *deployment, struct sim_node *node, uint64_t since_ns)
{
    sim_pages_read(deployment, node, "/v1/usage?group_by=key&limit=100", read_rows);
    for (struct list *of_all = all.next; of_all != &all; of_all = of_all->next)
        judge(LIST_ENTRY(of_all, struct sim_uses, of_all), since_ns);
}

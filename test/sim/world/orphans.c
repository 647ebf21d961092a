#include "orphans.h"
#include "base/check.h"
#include "base/mem.h"
#include "judge.h"
#include "load_internal.h"
#include "pages.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct refusal {
    struct list of_all;
    const struct sim_node *node;
    unsigned starts; /* of that node, until then */
    uint64_t number;
};

static struct list refusals = {&refusals, &refusals};

void sim_orphans_begin(void)
{
    struct list *node;

    while ((node = list_take(&refusals)))
        free(LIST_ENTRY(node, struct refusal, of_all));
}

void sim_orphans_note(const struct sim_node *node, uint64_t number)
{
    struct refusal *refusal = mem_alloc(sizeof *refusal);

    *refusal = (struct refusal){.node = node, .starts = node->starts, .number = number};
    list_append(&refusals, &refusal->of_all);
}

static void judge(uint64_t number)
{
    for (struct list *node = refusals.next; node != &refusals; node = node->next) {
        const struct refusal *refusal = LIST_ENTRY(node, struct refusal, of_all);

        if (refusal->number == number && refusal->starts == refusal->node->starts)
            sim_judge_violation("%s answered 503 to request %llu for a key, and that key lives",
                                refusal->node->host->name, (unsigned long long)number);
    }
}

static void read_rows(const char *body, char ret_last[SIM_ID_BYTES])
{
    static const char ID[] = "\"id\":\"", NAME[] = "\"name\":\"" SIM_KEY_NAME;

    for (const char *row = strstr(body, ID); row; row = strstr(row + 1, ID)) {
        const char *name = strstr(row, NAME), *next = strstr(row + 1, ID);

        CHECK(sim_http_copy_after(row, ID, ret_last, SIM_ID_BYTES));
        if (name && (!next || name < next))
            judge(strtoull(name + strlen(NAME), NULL, 10));
    }
}

void sim_orphans_judge(struct sim_deployment *deployment, struct sim_node *node)
{
    sim_pages_read(deployment, node, "/v1/api_keys?status=active&limit=100", read_rows);
}

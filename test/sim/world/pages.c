#include "pages.h"
#include "judge.h"
#include "load_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES_MAX = 1000, TARGET_BYTES = 192 };

struct page {
    int status; /* -1: it has not come */
    bool has_more;
    void (*read)(const char *body, char ret_last[SIM_ID_BYTES]);
    char last[SIM_ID_BYTES];
};

static void page_answered(void *arg, const struct sim_answer *answer)
{
    struct sim_asking *asking = arg;
    struct page *page = asking->arg;

    page->status = answer->status;
    page->has_more = strstr(answer->body, "\"has_more\":true") != NULL;
    page->last[0] = 0;
    if (answer->status == SIM_DONE)
        page->read(answer->body, page->last);
    free(asking);
}

static void read_page(struct sim_deployment *deployment, struct sim_node *node, const char *target, struct page *page)
{
    char of_page[TARGET_BYTES];

    snprintf(of_page, sizeof of_page, "%s%s%s", target, page->last[0] ? "&starting_after=" : "", page->last);
    page->status = -1;
    sim_load_ask(&(struct sim_asking){.node = node, .arg = page, .is_change = true}, "GET", of_page,
                 deployment->accounts[0].manager, NULL, 0, page_answered);
    while (page->status < 0 && sim_step(UINT64_MAX))
        continue;
}

void sim_pages_read(struct sim_deployment *deployment, struct sim_node *node, const char *target,
                    void (*read)(const char *body, char ret_last[SIM_ID_BYTES]))
{
    struct page page = {.read = read};
    unsigned pages = 0;

    do
        read_page(deployment, node, target, &page);
    while (page.status == SIM_DONE && page.has_more && page.last[0] && ++pages < PAGES_MAX);
    if (page.status != SIM_DONE || page.has_more)
        sim_judge_violation("GET %s, asked at %s, is answered %d", target, node->host->name, page.status);
}

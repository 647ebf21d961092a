/* A list that the product answers page by page. */
#pragma once
#include "deployment.h"

/* Reads all of it, with the first account's manager; a violation if a page is not answered 200. target: with a query.
 * read: gets a page, and fills in the id of its last row. */
void sim_pages_read(struct sim_deployment *deployment, struct sim_node *node, const char *target,
                    void (*read)(const char *body, char ret_last[SIM_ID_BYTES]));

/* status: the nodes, Redis, and what is degraded. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "examine_internal.h"
#include "status_internal.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct collecting {
    struct store_client *client;
    struct status *status;
    unsigned pending; /* partitions whose registry is being read */
};

/* A node that has drained withdraws its report. If that got lost, silence after draining means the same. */
static bool has_stopped(const struct status_node *node)
{
    return node->is_draining && node->age_ms > STATUS_SILENT_MS;
}

static size_t count_unnamed(const struct node_list *list, const struct status *status)
{
    size_t unnamed = 0;

    for (size_t m = 0; m < list->member_count; m++) {
        bool is_named = false;

        for (size_t i = 0; i < status->node_count && !is_named; i++)
            is_named = strstr(status->nodes[i].memberships, list->members[m].text) != NULL;
        unnamed += !is_named;
    }
    return unnamed;
}

static void nodes_were_listed(void *arg, enum store_result result, const struct node_list *list)
{
    struct collecting *collecting = arg;
    struct status *status = collecting->status;

    status->is_listed = result == STORE_OK;
    if (status->is_listed) {
        status->lease_max_ms = list->lease_max_ms;
        status->nodes = mem_alloc((list->node_count + 1) * sizeof *status->nodes);
        for (size_t i = 0; i < list->node_count; i++) {
            status_read_node(&list->nodes[i], &status->nodes[status->node_count]);
            status->node_count += !has_stopped(&status->nodes[status->node_count]);
        }
        status->unnamed = count_unnamed(list, status);
    }
    store_client_done(collecting->client);
}

static void registry_was_read(void *arg, enum store_result result, const struct node_list *list)
{
    struct collecting *collecting = arg;
    struct status *status = collecting->status;

    if (result == STORE_OK) {
        status->unnamed += count_unnamed(list, status);
        if (list->lease_max_ms > status->lease_max_ms)
            status->lease_max_ms = list->lease_max_ms;
    }
    if (--collecting->pending == 0)
        store_client_done(collecting->client);
}

static void canary_was_summed(void *arg, enum store_result result, const struct canary_summary *summary)
{
    struct collecting *collecting = arg;
    struct status *status = collecting->status;

    status->has_canary = result == STORE_OK;
    if (status->has_canary)
        status->canary = *summary;
    store_client_done(collecting->client);
}

/* Reports lie in the first partition, and every partition has a registry. */
static void list_nodes(struct collecting *collecting)
{
    struct partitions *partitions = collecting->client->partitions;

    node_store_list(partitions_at(partitions, 0), nodes_were_listed, collecting);
    store_client_wait(collecting->client);
    collecting->pending = partitions_count(partitions) - 1;
    if (!collecting->status->is_listed || collecting->pending == 0)
        return;
    for (unsigned i = 1; i < partitions_count(partitions); i++)
        node_store_list(partitions_at(partitions, i), registry_was_read, collecting);
    store_client_wait(collecting->client);
}

/* trouble holds the text that status->trouble points to, and has a byte more than its maximum. */
static int collect(struct status *status, struct keyring *keyring, struct buf *trouble)
{
    struct store_client client;
    struct collecting collecting = {.client = &client, .status = status};
    struct buf target;
    int code = store_client_open_to_look(&client, status->settings, keyring);

    if (code != EXIT_DONE)
        return code;
    buf_init_fixed(&target, status->target, sizeof status->target - 1);
    store_target_print(&client.settings.target, &target);
    status->is_reachable = redis_examine(&client, &status->facts, &status->partitions_well);
    if (status->is_reachable)
        list_nodes(&collecting);
    if (status->is_listed) {
        canary_sum(client.partitions, canary_was_summed, &collecting);
        store_client_wait(&client);
    }
    status->partitions = partitions_count(client.partitions);
    if (!status->is_listed || status->partitions_well < status->partitions)
        partitions_trouble(client.partitions, trouble);
    trouble->ptr[trouble->len] = '\0';
    status->trouble = trouble->ptr;
    store_client_close(&client);
    return EXIT_DONE;
}

/* Without a master key file, everything else is told. */
static int load_keyring(const struct command_line *line, struct keyring **ret_keyring)
{
    int code = EXIT_DONE;

    *ret_keyring = line->settings.master_key_file ? command_keyring(line, &code) : NULL;
    return code;
}

int status_run(const struct command_line *line)
{
    struct status *status = mem_alloc(sizeof *status);
    char storage[ADMIN_WHY_MAX_BYTES];
    struct buf trouble, out CLEANUP(buf_finish);
    struct keyring *keyring;
    int code = load_keyring(line, &keyring);

    buf_init(&out, ADMIN_OUTPUT_MAX_BYTES);
    buf_init_fixed(&trouble, storage, sizeof storage - 1);
    status->settings = &line->settings;
    status->now_ms = clock_wall_ms();
    if (code == EXIT_DONE)
        code = collect(status, keyring, &trouble);
    keyring_destroy(keyring);
    if (code == EXIT_DONE) {
        status_judge(status);
        if (line->json)
            status_print_json(status, &out);
        else
            status_print(status, &out);
        code = command_print(buf_text(&out));
    }
    if (code == EXIT_DONE && status->problem_count > 0)
        code = EXIT_UNFIT;
    free(status->nodes);
    free(status);
    return code;
}

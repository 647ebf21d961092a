#include "engine/node_store.h"

#include "base/mem.h"
#include "engine/verb.h"
#include <stdlib.h>
#include <string.h>

/* A report that is lost comes again. */
static void on_reported(UNUSED void *arg, UNUSED enum store_result result, UNUSED const struct redis_reply *reply)
{
}

void node_store_report(struct store *store, struct text node, struct text report)
{
    const struct text argv[] = {node, report};

    if (!store_is_empty(store))
        store_call_script(store, SCRIPT_node_report, SCRIPT_REPORTS, sizeof argv / sizeof *argv, argv, on_reported,
                          NULL);
}

static bool read_members(const struct redis_reply *registry, struct member_name *ret_members)
{
    for (size_t i = 0; i < registry->count; i += 2)
        if (!reply_chars(reply_at(registry, i), ret_members[i / 2].text, sizeof ret_members->text))
            return false;
    return true;
}

static bool read_nodes(const struct redis_reply *reply, struct node_row *ret_nodes)
{
    for (size_t i = 2; i < reply->count; i++) {
        const struct redis_reply *item = reply_at(reply, i);
        struct node_row *node = &ret_nodes[i - 2];

        if (!reply_text(reply_at(item, 0), &node->name) || !reply_integer(reply_at(item, 1), &node->age_ms) ||
            !reply_text(reply_at(item, 2), &node->report))
            return false;
    }
    return true;
}

static void list_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    const struct redis_reply *registry = reply_at(reply, 1);
    struct node_list list = {0};
    struct member_name *members = NULL;
    struct node_row *nodes = NULL;

    if (result == STORE_OK && reply_integer(reply_at(reply, 0), &list.lease_max_ms) && registry &&
        registry->type == REPLY_ARRAY && registry->count % 2 == 0 && reply->count - 2 <= NODES_LISTED_MAX) {
        list.members = members = mem_alloc((registry->count / 2 + 1) * sizeof *members);
        list.nodes = nodes = mem_alloc((reply->count - 1) * sizeof *nodes);
        list.member_count = registry->count / 2;
        list.node_count = reply->count - 2;
    }
    if (result == STORE_OK && (!members || !read_members(registry, members) || !read_nodes(reply, nodes))) {
        store_malformed(asked->store, "list of nodes");
        result = STORE_UNAVAILABLE;
    }
    ((nodes_listed *)asked->done)(asked->arg, result, result == STORE_OK ? &list : NULL);
    free(members);
    free(nodes);
}

void node_store_list(struct store *store, nodes_listed *done, void *arg)
{
    verb_ask(store, SCRIPT_node_list, SCRIPT_READS, NULL, list_answer, (verb_done *)done, arg);
}

/* Nodes that do not agree on settings. */
#include "status_internal.h"

#include <string.h>

void status_read_agreements(const struct json *report, struct status_node *node)
{
    const struct json *all = json_member(report, "settings"), *item;
    int64_t digest;

    if (!all || json_type(all) != JSON_OBJECT)
        return;
    for (item = json_first(all); item && node->agreement_count < AGREEMENTS_MAX; item = json_next(item)) {
        struct status_agreement *agreement = &node->agreements[node->agreement_count];
        struct buf name;

        if (json_type(item) != JSON_NUMBER || !json_integer(item, &digest))
            continue;
        buf_init_fixed(&name, agreement->name, sizeof agreement->name - 1);
        buf_append_printable(&name, json_name(item));
        agreement->digest = digest;
        node->agreement_count++;
    }
}

/* A node that is silent may have been stopped for a change, and one of an earlier version does not say. */
static bool is_compared(const struct status_node *node)
{
    return node->is_readable && node->age_ms <= STATUS_SILENT_MS && node->agreement_count > 0;
}

static const struct status_agreement *agreement_of(const struct status_node *node, const char *name)
{
    for (size_t i = 0; is_compared(node) && i < node->agreement_count; i++)
        if (strcmp(node->agreements[i].name, name) == 0)
            return &node->agreements[i];
    return NULL;
}

static size_t count_like(const struct status *status, const struct status_agreement *wanted)
{
    size_t count = 0;

    for (size_t i = 0; i < status->node_count; i++) {
        const struct status_agreement *agreement = agreement_of(&status->nodes[i], wanted->name);

        count += agreement && agreement->digest == wanted->digest;
    }
    return count;
}

/* Most nodes have another value; of as many, those that are listed first are right. */
static bool is_odd(const struct status *status, const struct status_agreement *own)
{
    size_t count = count_like(status, own);
    bool is_first = false;

    for (size_t i = 0; i < status->node_count; i++) {
        const struct status_agreement *other = agreement_of(&status->nodes[i], own->name);
        size_t other_count = other ? count_like(status, other) : 0;

        is_first |= other && other->digest == own->digest;
        if (other_count > count || (other_count == count && !is_first))
            return true;
    }
    return false;
}

bool status_print_differences(const struct status *status, const struct status_node *node, struct buf *out)
{
    size_t from = out->len;

    for (size_t i = 0; is_compared(node) && i < node->agreement_count; i++)
        if (is_odd(status, &node->agreements[i]))
            buf_printf(out, out->len > from ? ", %s" : "%s", node->agreements[i].name);
    return out->len > from;
}

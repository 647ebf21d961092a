/* What a round of answers says of the primary of each slot. */
#include "cluster_internal.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TORN_ROUNDS = 2,            /* a move begins at one end, and a moment later at the other */
    IMPORTER_SILENT_MS = 30000, /* then it is taken to be gone; in time, because links that ask make rounds short */
};

struct replica_counts {
    int64_t now, usual;
};

/* One slot, for which links want the primary. */
struct cluster_slot {
    struct list node;
    struct redis_cluster *cluster;
    struct redis_resolver resolver;
    unsigned number;
    struct redis_address primary; /* port 0: unknown */
    int64_t epoch;                /* of that primary; -1: unknown */
    struct replica_counts replicas;
    /* The node that last said that it is importing the slot, and does not own it; empty: none. The source of the move
     * knows of it too, and refuses what would see half of the names. The replica that takes over from it does not. */
    char importer[CLUSTER_NODE_ID_CHARS + 1];
    uint64_t importer_heard_ms;
    unsigned torn_rounds; /* in which the primary knew of no move, and another node did */

    /* In this round: the primary by its own word, and the highest epoch that any node knows of one. */
    struct redis_address claimed; /* port 0: none */
    int64_t claimed_epoch;
    struct replica_counts claimed_replicas;
    bool claimed_moves;         /* it knows that the slot is being moved */
    struct redis_address named; /* port 0: none */
    int64_t named_epoch;
};

static struct cluster_slot *slot_of(struct list *node)
{
    return LIST_ENTRY(node, struct cluster_slot, node);
}

/* Some of the names may be at another node, and whoever claims the slot does not know. */
static bool is_torn(const struct cluster_slot *slot)
{
    return slot->importer[0] && !slot->claimed_moves;
}

static void learn(struct cluster_slot *slot)
{
    bool is_other = !redis_address_equal(&slot->primary, &slot->claimed);
    bool is_first = slot->epoch < 0;

    REQUIRE(slot->claimed.port > 0 && slot->claimed_epoch >= slot->named_epoch);
    REQUIRE(!is_other || !is_torn(slot));
    slot->primary = slot->claimed;
    slot->epoch = slot->claimed_epoch;
    slot->replicas = slot->claimed_replicas;
    if (!is_other)
        return;
    metric_add(METRIC_REDIS_SWITCHES, !is_first);
    if (!is_first)
        LOG(LOG_WARN, "failover: the cluster names another primary", log_int("slot", slot->number),
            log_str("primary", slot->primary.host), log_int("port", slot->primary.port), log_int("epoch", slot->epoch));
    redis_resolver_tell_moved(&slot->resolver, &slot->primary);
}

/* Among equal epochs, the one that keeps the current primary. */
static void claim(struct cluster_slot *slot, const struct redis_address *address, int64_t epoch,
                  struct replica_counts replicas, bool moves)
{
    bool is_current = redis_address_equal(address, &slot->primary);

    if (slot->claimed.port > 0 && (epoch < slot->claimed_epoch || (epoch == slot->claimed_epoch && !is_current)))
        return;
    slot->claimed = *address;
    slot->claimed_epoch = epoch;
    slot->claimed_replicas = replicas;
    slot->claimed_moves = moves;
    if (epoch < slot->named_epoch || !slot->cluster->is_settled || is_torn(slot))
        return;
    if (epoch > slot->epoch || (epoch == slot->epoch && is_current)) {
        learn(slot);
        redis_resolver_tell_master(&slot->resolver, &slot->primary);
    }
}

/* A node that does not know its own address is where it was reached. */
static struct redis_address address_of(const struct cluster_node *node, const char *host)
{
    struct redis_address address = node->address;

    if (!address.host[0])
        snprintf(address.host, sizeof address.host, "%s", host);
    return address;
}

static void name_replicas(struct redis_cluster *cluster, const struct cluster_topology *view,
                          const struct cluster_node *primary)
{
    for (size_t i = 0; i < view->node_count; i++)
        if (strcmp(view->nodes[i].primary_id, primary->id) == 0)
            cluster_name_node(cluster, &view->nodes[i]);
}

/* A node that imports the slot is asked as long as it says so, because the source may fail, and then no other node
 * names it. */
static void take_move(struct cluster_slot *slot, const struct cluster_topology *view, bool is_owner)
{
    const struct cluster_move *move = cluster_topology_move(view, slot->number);
    const struct cluster_node *other = move ? cluster_topology_find(view, move->other_id) : NULL;
    const char *id = view->myself->id;

    if (other)
        cluster_name_node(slot->cluster, other);
    if (move && move->is_import && view->myself->is_primary && !is_owner) {
        cluster_name_node(slot->cluster, view->myself);
        memcpy(slot->importer, id, sizeof slot->importer);
        slot->importer_heard_ms = uv_now(slot->cluster->loop);
    } else if (strcmp(slot->importer, id) == 0) {
        slot->importer[0] = '\0';
    }
}

/* That its owner hands it over. */
static bool moves_away(const struct cluster_topology *view, unsigned slot)
{
    const struct cluster_move *move = cluster_topology_move(view, slot);

    return move && !move->is_import;
}

static void take_view(struct cluster_slot *slot, const struct cluster_topology *view, const char *host)
{
    const struct cluster_node *owner = cluster_topology_owner(view, slot->number);

    take_move(slot, view, owner == view->myself);
    if (!owner)
        return;
    const struct redis_address address = address_of(owner, host);
    if ((int64_t)owner->epoch > slot->named_epoch) {
        slot->named = address;
        slot->named_epoch = (int64_t)owner->epoch;
    }
    cluster_name_node(slot->cluster, owner);
    name_replicas(slot->cluster, view, owner);
    if (owner == view->myself && address.port > 0)
        claim(slot, &address, (int64_t)owner->epoch,
              (struct replica_counts){cluster_topology_replicas(view, owner), cluster_topology_replicas_usual(view)},
              moves_away(view, slot->number));
}

void cluster_slots_take(struct redis_cluster *cluster, const struct cluster_topology *view, const char *host)
{
    struct list *at = cluster->slots.next, *next;

    for (; at != &cluster->slots; at = next) {
        next = at->next;
        take_view(slot_of(at), view, host);
    }
}

/* The text names the slot only if no other slot has that trouble: partitions with the same text share a sentence. */
static void tell_failure(struct cluster_slot *slot, const char *trouble)
{
    char text[CLUSTER_TROUBLE_BYTES];

    if (!trouble && slot->torn_rounds > 0)
        snprintf(text, sizeof text,
                 "slot %u is being moved, and its primary does not know: finish the move (docker/redis/CLUSTER.md)",
                 slot->number);
    else if (!trouble && slot->named.port > 0)
        snprintf(text, sizeof text, "its primary %.*s:%u does not answer", (int)sizeof slot->named.host - 1,
                 slot->named.host, slot->named.port);
    else if (!trouble)
        snprintf(text, sizeof text, "no node serves slot %u", slot->number);
    else
        snprintf(text, sizeof text, "%s", trouble);
    redis_resolver_tell_failure(&slot->resolver, text);
}

/* Links stay for a moment at a primary that they know, because a move may just have begun. They never go to another. */
static bool must_wait_for_move(struct cluster_slot *slot)
{
    static const struct redis_address NOBODY = {.port = 0};

    if (uv_now(slot->cluster->loop) - slot->importer_heard_ms > IMPORTER_SILENT_MS)
        slot->importer[0] = '\0';
    if (!is_torn(slot) || slot->claimed.port == 0) {
        slot->torn_rounds = 0;
        return false;
    }
    if (++slot->torn_rounds == TORN_ROUNDS)
        redis_resolver_tell_moved(&slot->resolver, &NOBODY);
    return slot->torn_rounds >= TORN_ROUNDS || !redis_address_equal(&slot->claimed, &slot->primary);
}

/* An epoch lower than one seen before is accepted only if most nodes answered and none knows a higher one: the cluster
 * was set up afresh. */
static bool slot_decide(struct cluster_slot *slot, bool have_most_answered)
{
    bool is_newest = slot->claimed.port > 0 && slot->claimed_epoch >= slot->named_epoch;

    if (must_wait_for_move(slot) || !is_newest || (slot->claimed_epoch < slot->epoch && !have_most_answered))
        return false;
    learn(slot);
    redis_resolver_tell_master(&slot->resolver, &slot->primary);
    return true;
}

void cluster_slots_begin(struct redis_cluster *cluster)
{
    for (struct list *at = cluster->slots.next; at != &cluster->slots; at = at->next) {
        slot_of(at)->claimed.port = slot_of(at)->named.port = 0;
        slot_of(at)->named_epoch = -1;
    }
}

void cluster_slots_decide(struct redis_cluster *cluster, bool have_most_answered, bool may_fail, const char *trouble)
{
    struct list *at = cluster->slots.next, *next;

    for (; at != &cluster->slots; at = next) {
        next = at->next;
        if (!slot_decide(slot_of(at), have_most_answered) && may_fail)
            tell_failure(slot_of(at), trouble);
    }
}

void cluster_slots_fail(struct redis_cluster *cluster, const char *trouble)
{
    struct list *at = cluster->slots.next, *next;

    for (; at != &cluster->slots; at = next) {
        next = at->next;
        tell_failure(slot_of(at), trouble);
    }
}

/* Resolvers */

static void ask(struct redis_resolver *resolver)
{
    cluster_ask(LIST_ENTRY(resolver, struct cluster_slot, resolver)->cluster);
}

static int64_t replicas(const struct redis_resolver *resolver)
{
    return LIST_ENTRY(resolver, const struct cluster_slot, resolver)->replicas.now;
}

static int64_t replicas_usual(const struct redis_resolver *resolver)
{
    return LIST_ENTRY(resolver, const struct cluster_slot, resolver)->replicas.usual;
}

struct redis_resolver *redis_cluster_resolver(struct redis_cluster *cluster, unsigned slot)
{
    struct cluster_slot *added = mem_alloc(sizeof *added);

    REQUIRE(slot < REDIS_SLOTS);
    added->cluster = cluster;
    added->number = slot;
    added->epoch = added->named_epoch = -1;
    added->resolver = (struct redis_resolver){
        .what = "the cluster", .ask = ask, .replicas = replicas, .replicas_usual = replicas_usual};
    list_init(&added->resolver.followers);
    snprintf(added->resolver.source, sizeof added->resolver.source, "the cluster");
    list_append(&cluster->slots, &added->node);
    return &added->resolver;
}

void cluster_slots_check_unused(const struct redis_cluster *cluster)
{
    for (struct list *at = cluster->slots.next; at != &cluster->slots; at = at->next)
        REQUIRE(list_empty(&slot_of(at)->resolver.followers));
}

void cluster_slots_free(struct redis_cluster *cluster)
{
    struct list *node;

    while ((node = list_take(&cluster->slots)))
        free(slot_of(node));
}

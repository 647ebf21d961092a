#include "redis/cluster.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "cluster_topology.h"
#include "redis/link.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMEOUT_MAX_MS = 500, /* the answer takes a node no time, so a slower one counts as down */
    BACKOFF_MAX_MS = 1000,
    CALLS_MAX = 8,
    FORGET_ROUNDS = 30, /* without anyone naming a node that is no seed; without a word of one that imports a slot */
    TORN_ROUNDS = 2,    /* a move begins at one end, and a moment later at the other */
    REFUSAL_BYTES = 160,
    TROUBLE_BYTES = REDIS_HOST_BYTES + 192,
};

/* One node that is asked. */
struct cluster_peer {
    struct list node;
    struct redis_cluster *cluster;
    struct redis_address address;
    struct redis_link *questions;
    char id[CLUSTER_NODE_ID_CHARS + 1]; /* as it said on this connection; empty: not yet */
    bool is_seed, is_closing;
    bool is_logged; /* on this connection, as foreign */
    bool is_heard;  /* it has been asked, and was heard or did not answer */
    unsigned unnamed_rounds;
    /* Its answer in this round. */
    bool has_answered, knows;
    bool is_foreign;             /* it belongs to another cluster */
    char refusal[REFUSAL_BYTES]; /* why it does not know */
};

/* One slot, for which links want the primary. */
struct cluster_slot {
    struct list node;
    struct redis_cluster *cluster;
    struct redis_resolver resolver;
    unsigned number;
    struct redis_address primary; /* port 0: unknown */
    int64_t epoch;                /* of that primary; -1: unknown */
    int64_t replicas;
    /* The node that last said that it is importing the slot, and does not own it; empty: none. The source of the move
     * knows of it too, and refuses what would see half of the names. The replica that takes over from it does not. */
    char importer[CLUSTER_NODE_ID_CHARS + 1];
    unsigned importer_silent_rounds;
    unsigned torn_rounds; /* in which the primary knew of no move, and another node did */

    /* In this round: the primary by its own word, and the highest epoch that any node knows of one. */
    struct redis_address claimed; /* port 0: none */
    int64_t claimed_epoch, claimed_replicas;
    bool claimed_moves;         /* it knows that the slot is being moved */
    struct redis_address named; /* port 0: none */
    int64_t named_epoch;
};

struct redis_cluster {
    uv_loop_t *loop;
    struct redis_target target; /* of each node, without its address */
    struct redis_tls *tls;
    uint32_t timeout_ms;
    struct list peers; /* struct cluster_peer */
    unsigned peer_count;
    struct list slots; /* struct cluster_slot */
    struct redis_rounds rounds;
    struct cluster_roster roster; /* as it was named last; empty: nobody has named any */
    /* The seeds are of one cluster. Until that is known, nothing is decided; later, others are ignored. */
    bool is_settled;

    unsigned open; /* links and timer still open */
    bool is_closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void ask_peers(void *arg);
static void round_end(void *arg);
static void on_questions_state(void *arg, bool is_up);
/* A node without slots that knows of none has not joined the cluster yet, or has left it. */
static bool is_of_cluster(struct redis_cluster *cluster, const struct cluster_topology *view)
{
    if (view->range_count == 0)
        return true;
    if (cluster->roster.count > 0 && !cluster_roster_meets(&cluster->roster, view))
        return false;
    cluster_roster_set(&cluster->roster, view);
    return true;
}

static void note_foreign(struct cluster_peer *peer)
{
    snprintf(peer->refusal, sizeof peer->refusal, "it belongs to another cluster");
    peer->is_foreign = true;
    if (!peer->cluster->is_settled || peer->is_logged)
        return;
    peer->is_logged = true;
    LOG(LOG_WARN, "a node belongs to another cluster and is ignored",
        log_str("node", redis_link_where(peer->questions)));
}

static void on_nodes_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);

static struct cluster_peer *peer_of(struct list *node)
{
    return LIST_ENTRY(node, struct cluster_peer, node);
}

static struct cluster_slot *slot_of(struct list *node)
{
    return LIST_ENTRY(node, struct cluster_slot, node);
}

/* Peers */

static void peer_open(struct redis_cluster *cluster, const struct redis_address *address, bool is_seed)
{
    struct cluster_peer *peer = mem_alloc(sizeof *peer);
    struct redis_target target = cluster->target;
    const struct redis_link_settings settings = {
        .name = "cluster",
        .durations = HISTOGRAM_REDIS_CLUSTER,
        .timeout_ms = cluster->timeout_ms,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .calls_max = CALLS_MAX,
        .tls = cluster->tls,
    };

    peer->cluster = cluster;
    peer->address = *address;
    peer->is_seed = is_seed;
    memcpy(target.host, address->host, sizeof target.host);
    target.port = address->port;
    list_append(&cluster->peers, &peer->node);
    cluster->peer_count++;
    cluster->open++;
    peer->questions = redis_link_create(cluster->loop, &target, &settings, on_questions_state, peer);
    secure_wipe(&target, sizeof target);
}

static void part_closed(struct redis_cluster *cluster);

static void on_peer_closed(void *arg)
{
    struct cluster_peer *peer = arg;
    struct redis_cluster *cluster = peer->cluster;

    free(peer);
    part_closed(cluster);
}

static void peer_close(struct cluster_peer *peer)
{
    peer->is_closing = true;
    list_remove(&peer->node);
    peer->cluster->peer_count--;
    redis_link_close(peer->questions, on_peer_closed, peer);
}

/* A seed's address may be a name that leads to another node with each connection, so a node is a peer of its own unless
 * a seed is it at present. */
static struct cluster_peer *find_peer(struct redis_cluster *cluster, const struct cluster_node *node)
{
    for (struct list *at = cluster->peers.next; at != &cluster->peers; at = at->next) {
        struct cluster_peer *peer = peer_of(at);

        if (redis_address_equal(&peer->address, &node->address) || strcmp(peer->id, node->id) == 0)
            return peer;
    }
    return NULL;
}

/* Somebody named that node: from now on it is asked too. */
static void peer_named(struct redis_cluster *cluster, const struct cluster_node *node)
{
    struct cluster_peer *peer = find_peer(cluster, node);

    if (peer)
        peer->unnamed_rounds = 0;
    else if (node->address.host[0] && node->address.port > 0 && cluster->peer_count < CLUSTER_NODES_MAX)
        peer_open(cluster, &node->address, false);
}

static void forget_unnamed(struct redis_cluster *cluster)
{
    struct list *at = cluster->peers.next, *next;

    for (; at != &cluster->peers; at = next) {
        next = at->next;
        if (!peer_of(at)->is_seed && ++peer_of(at)->unnamed_rounds > FORGET_ROUNDS)
            peer_close(peer_of(at));
    }
}

struct redis_cluster *redis_cluster_create(uv_loop_t *loop, const struct redis_target *target, struct redis_tls *tls,
                                           uint32_t timeout_ms)
{
    struct redis_cluster *cluster = mem_alloc(sizeof *cluster);

    cluster->loop = loop;
    cluster->target.tls = target->tls;
    memcpy(cluster->target.user, target->user, sizeof cluster->target.user);
    memcpy(cluster->target.password, target->password, sizeof cluster->target.password);
    cluster->tls = tls;
    cluster->timeout_ms = timeout_ms < TIMEOUT_MAX_MS ? timeout_ms : TIMEOUT_MAX_MS;
    list_init(&cluster->peers);
    list_init(&cluster->slots);
    cluster->open = 1;
    redis_rounds_start(&cluster->rounds, loop, ask_peers, round_end, cluster);
    for (unsigned i = 0; i < target->seed_count; i++)
        peer_open(cluster, &target->seeds[i], true);
    return cluster;
}

/* Rounds */

static void ask_peers(void *arg)
{
    struct redis_cluster *cluster = arg;

    for (struct list *at = cluster->slots.next; at != &cluster->slots; at = at->next) {
        slot_of(at)->claimed.port = slot_of(at)->named.port = 0;
        slot_of(at)->named_epoch = -1;
    }
    redis_round_expect(&cluster->rounds, cluster->peer_count);
    for (struct list *at = cluster->peers.next; at != &cluster->peers; at = at->next) {
        struct cluster_peer *peer = peer_of(at);

        peer->has_answered = peer->knows = peer->is_foreign = false;
        peer->refusal[0] = '\0';
        redis_link_call(peer->questions, 2, (struct text[]){TEXT("CLUSTER"), TEXT("NODES")}, on_nodes_answered, peer);
    }
}

static void on_questions_state(void *arg, bool is_up)
{
    struct cluster_peer *peer = arg;

    if (is_up)
        redis_round_begin(&peer->cluster->rounds);
    else
        peer->id[0] = '\0'; /* the node may come back elsewhere */
    peer->is_logged = false;
}

/* If no node is connected, the follower waits for the first one or for the next round. */
static void ask(struct redis_resolver *resolver)
{
    struct redis_cluster *cluster = LIST_ENTRY(resolver, struct cluster_slot, resolver)->cluster;
    bool is_any_ready = false;

    for (struct list *at = cluster->peers.next; at != &cluster->peers; at = at->next)
        is_any_ready |= redis_link_is_ready(peer_of(at)->questions);
    if (cluster->rounds.due == 0 && is_any_ready)
        redis_round_begin(&cluster->rounds);
}

static void learn(struct cluster_slot *slot)
{
    bool is_other = !redis_address_equal(&slot->primary, &slot->claimed);
    bool is_first = slot->epoch < 0;

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

/* Some of the names may be at another node, and whoever claims the slot does not know. */
static bool is_torn(const struct cluster_slot *slot)
{
    return slot->importer[0] && !slot->claimed_moves;
}

/* Among equal epochs, the one that keeps the current primary. */
static void claim(struct cluster_slot *slot, const struct redis_address *address, int64_t epoch, int64_t replicas,
                  bool moves)
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
static struct redis_address address_of(const struct cluster_peer *peer, const struct cluster_node *node)
{
    struct redis_address address = node->address;

    if (!address.host[0])
        memcpy(address.host, peer->address.host, sizeof address.host);
    return address;
}

static void name_replicas(struct redis_cluster *cluster, const struct cluster_topology *view,
                          const struct cluster_node *primary)
{
    for (size_t i = 0; i < view->node_count; i++)
        if (strcmp(view->nodes[i].primary_id, primary->id) == 0)
            peer_named(cluster, &view->nodes[i]);
}

/* Whoever imports a slot is asked from now on, so that it can say so when the source has failed. */
static void take_move(const struct cluster_peer *peer, const struct cluster_topology *view, struct cluster_slot *slot,
                      bool is_owner)
{
    const struct cluster_move *move = cluster_topology_move(view, slot->number);
    const struct cluster_node *other = move ? cluster_topology_find(view, move->other_id) : NULL;
    const char *id = view->myself->id;

    if (other)
        peer_named(peer->cluster, other);
    if (move && move->is_import && view->myself->is_primary && !is_owner) {
        memcpy(slot->importer, id, sizeof slot->importer);
        slot->importer_silent_rounds = 0;
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

static void take_view_of_slot(const struct cluster_peer *peer, const struct cluster_topology *view,
                              struct cluster_slot *slot)
{
    const struct cluster_node *owner = cluster_topology_owner(view, slot->number);

    take_move(peer, view, slot, owner == view->myself);
    if (!owner)
        return;
    const struct redis_address address = address_of(peer, owner);
    if ((int64_t)owner->epoch > slot->named_epoch) {
        slot->named = address;
        slot->named_epoch = (int64_t)owner->epoch;
    }
    peer_named(peer->cluster, owner);
    name_replicas(peer->cluster, view, owner);
    if (owner == view->myself && address.port > 0)
        claim(slot, &address, (int64_t)owner->epoch, cluster_topology_replicas(view, owner),
              moves_away(view, slot->number));
}

static void take_view(struct cluster_peer *peer, const struct cluster_topology *view)
{
    struct redis_cluster *cluster = peer->cluster;
    struct list *at = cluster->slots.next, *next;

    snprintf(peer->id, sizeof peer->id, "%s", view->myself->id);
    for (; at != &cluster->slots; at = next) {
        next = at->next;
        take_view_of_slot(peer, view, slot_of(at));
    }
}

static void note_refusal(struct cluster_peer *peer, const struct redis_reply *reply)
{
    struct text words = reply->type == REPLY_ERROR ? reply->text : TEXT("its answer to CLUSTER NODES is malformed");

    if (text_equal(reply_error_kind(reply), TEXT("NOPERM")))
        words = TEXT("its ACL forbids CLUSTER NODES: grant this user +cluster|nodes");
    else if (reply->type == REPLY_ERROR && memmem(words.ptr, words.len, "cluster support disabled", 24))
        words = TEXT("it is not part of a cluster: use redis://");
    snprintf(peer->refusal, sizeof peer->refusal, "%.*s", TEXT_ARG(words));
}

static void on_nodes_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct cluster_peer *peer = arg;
    struct redis_cluster *cluster = peer->cluster;
    struct cluster_topology view;
    struct text nodes;

    peer->has_answered = outcome == REDIS_REPLIED;
    peer->is_heard |= outcome != REDIS_NOT_SENT;
    if (peer->has_answered && !peer->is_closing && !cluster->is_closing) {
        if (!reply_text(reply, &nodes) || !cluster_topology_parse(nodes, cluster->target.tls, &view)) {
            note_refusal(peer, reply);
        } else {
            peer->knows = is_of_cluster(cluster, &view);
            if (peer->knows)
                take_view(peer, &view);
            else
                note_foreign(peer);
            cluster_topology_free(&view);
        }
    }
    redis_round_answered(&cluster->rounds);
}

/* Why no node of the cluster knows; NULL: one does. */
static const char *cluster_trouble(struct redis_cluster *cluster, char ret_text[TROUBLE_BYTES])
{
    const struct cluster_peer *first = peer_of(cluster->peers.next);

    for (struct list *at = cluster->peers.next; at != &cluster->peers; at = at->next) {
        const struct cluster_peer *peer = peer_of(at);

        if (peer->knows)
            return NULL;
        if (peer->refusal[0] && !first->refusal[0])
            first = peer;
    }
    if (first->refusal[0])
        snprintf(ret_text, TROUBLE_BYTES, "%s: %s", redis_link_where(first->questions), first->refusal);
    else
        snprintf(ret_text, TROUBLE_BYTES, "no node answers: %s", redis_link_trouble(first->questions));
    return ret_text;
}

/* Without the slot where it is true of others too: partitions with the same trouble are told of together. */
static void tell_failure(struct cluster_slot *slot, const char *trouble)
{
    char text[TROUBLE_BYTES];

    if (!trouble && slot->torn_rounds > 0)
        snprintf(text, sizeof text,
                 "slot %u is being moved, and its primary does not know: finish the move, as in OPERATIONS.md",
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

    if (slot->importer[0] && ++slot->importer_silent_rounds > FORGET_ROUNDS)
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

/* It was named just now, or the process has just started: once it is connected, there is another round. */
static bool is_new(const struct cluster_peer *peer)
{
    return !peer->is_heard && (!redis_link_has_tried(peer->questions) || redis_link_is_ready(peer->questions));
}

/* What the peers said in a round. */
struct round_count {
    unsigned knowing, foreign;
    bool is_one_new, is_seed_new;
    /* The first that said anything of the slots, and the first of another cluster than that one; NULL: none. */
    const struct cluster_peer *first, *other;
};

static struct round_count count_round(const struct redis_cluster *cluster)
{
    struct round_count count = {0};

    for (struct list *at = cluster->peers.next; at != &cluster->peers; at = at->next) {
        const struct cluster_peer *peer = peer_of(at);
        count.knowing += peer->knows;
        count.foreign += peer->is_foreign;
        count.is_one_new |= is_new(peer);
        count.is_seed_new |= is_new(peer) && peer->is_seed;
        if (!count.first && (peer->knows || peer->is_foreign))
            count.first = peer;
        else if (!count.other && count.first && (count.first->is_foreign ? peer->knows : peer->is_foreign))
            count.other = peer;
    }
    return count;
}

/* Addresses of nodes that are gone may be given to another cluster. */
static void close_strangers(struct redis_cluster *cluster)
{
    struct list *at = cluster->peers.next, *next;

    for (; at != &cluster->peers; at = next) {
        next = at->next;
        if (peer_of(at)->is_foreign && !peer_of(at)->is_seed)
            peer_close(peer_of(at));
    }
}

/* Whether the seeds are of one cluster. If not, *ret_trouble says so. If none of the known cluster is left, but most
 * peers name another one, the cluster was set up afresh: the next round takes it for ours. */
static bool settle(struct redis_cluster *cluster, const struct round_count *count, char ret_trouble[TROUBLE_BYTES])
{
    if (!cluster->is_settled && count->foreign > 0)
        snprintf(ret_trouble, TROUBLE_BYTES, "%s and %s belong to different clusters: name the nodes of one",
                 redis_link_where(count->first->questions),
                 count->other ? redis_link_where(count->other->questions) : "others");
    bool is_afresh = cluster->is_settled && count->knowing == 0 && 2 * count->foreign > cluster->peer_count;
    if (is_afresh || (!cluster->is_settled && count->foreign > 0)) {
        cluster_roster_set(&cluster->roster, NULL);
        cluster->is_settled = false;
        return false;
    }
    cluster->is_settled |= count->knowing > 0 && !count->is_seed_new;
    if (cluster->is_settled)
        close_strangers(cluster);
    return cluster->is_settled;
}

static void decide_slots(struct redis_cluster *cluster, const struct round_count *count, const char *trouble)
{
    struct list *at = cluster->slots.next, *next;

    for (; at != &cluster->slots; at = next) {
        next = at->next;
        if (!slot_decide(slot_of(at), 2 * count->knowing > cluster->peer_count) && !count->is_one_new)
            tell_failure(slot_of(at), trouble);
    }
}

static void fail_slots(struct redis_cluster *cluster, const char *trouble)
{
    for (struct list *at = cluster->slots.next, *next; at != &cluster->slots; at = next) {
        next = at->next;
        tell_failure(slot_of(at), trouble);
    }
}

static void round_end(void *arg)
{
    struct redis_cluster *cluster = arg;
    const struct round_count count = count_round(cluster);
    char text[TROUBLE_BYTES], strangers[TROUBLE_BYTES] = "";
    const char *trouble = cluster_trouble(cluster, text);

    if (settle(cluster, &count, strangers))
        decide_slots(cluster, &count, trouble);
    else if (strangers[0] || (trouble && !count.is_one_new))
        fail_slots(cluster, strangers[0] ? strangers : trouble);
    if (count.knowing + count.foreign > 0)
        forget_unnamed(cluster);
}

/* Slots */

static int64_t replicas(const struct redis_resolver *resolver)
{
    return LIST_ENTRY(resolver, const struct cluster_slot, resolver)->replicas;
}

struct redis_resolver *redis_cluster_resolver(struct redis_cluster *cluster, unsigned slot)
{
    struct cluster_slot *added = mem_alloc(sizeof *added);

    CHECK(slot < REDIS_SLOTS);
    added->cluster = cluster;
    added->number = slot;
    added->epoch = added->named_epoch = -1;
    added->resolver = (struct redis_resolver){.what = "the cluster", .ask = ask, .replicas = replicas};
    list_init(&added->resolver.followers);
    snprintf(added->resolver.source, sizeof added->resolver.source, "the cluster");
    list_append(&cluster->slots, &added->node);
    return &added->resolver;
}

/* Closing */

static void part_closed(struct redis_cluster *cluster)
{
    void (*closed)(void *arg) = cluster->closed;
    void *arg = cluster->closed_arg;
    struct list *node;

    if (--cluster->open > 0)
        return;
    while ((node = list_first(&cluster->slots))) {
        list_remove(node);
        free(slot_of(node));
    }
    cluster_roster_set(&cluster->roster, NULL);
    secure_wipe(&cluster->target, sizeof cluster->target);
    free(cluster);
    closed(arg);
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_closed(((struct redis_rounds *)handle->data)->arg);
}

void redis_cluster_close(struct redis_cluster *cluster, void (*closed)(void *arg), void *arg)
{
    CHECK(!cluster->is_closing);
    for (struct list *at = cluster->slots.next; at != &cluster->slots; at = at->next)
        CHECK(list_empty(&slot_of(at)->resolver.followers));
    cluster->is_closing = true;
    cluster->closed = closed;
    cluster->closed_arg = arg;
    while (!list_empty(&cluster->peers))
        peer_close(peer_of(list_first(&cluster->peers)));
    redis_rounds_stop(&cluster->rounds, on_timer_closed);
}

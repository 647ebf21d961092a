#include "cluster_internal.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "redis/link.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMEOUT_MAX_MS = 500, /* the answer takes a node no time, so a slower one counts as down */
    BACKOFF_MAX_MS = 1000,
    CALLS_MAX = 8,
    FORGET_ROUNDS = 30, /* without anyone naming a node that is no seed */
    REFUSAL_BYTES = 160,
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

static void ask_peers(void *arg);
static void on_nodes_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void round_end(void *arg);
static void on_questions_state(void *arg, bool is_up);
static void part_closed(struct redis_cluster *cluster);

/* Peers */

static struct cluster_peer *peer_of(struct list *node)
{
    return LIST_ENTRY(node, struct cluster_peer, node);
}

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
        .is_finder = true,
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

void cluster_name_node(struct redis_cluster *cluster, const struct cluster_node *node)
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
    cluster->target.login = target->login;
    cluster->target.access = target->access;
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

    cluster_slots_begin(cluster);
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

void cluster_ask(struct redis_cluster *cluster)
{
    bool is_any_ready = false;

    for (struct list *at = cluster->peers.next; at != &cluster->peers; at = at->next)
        is_any_ready |= redis_link_is_ready(peer_of(at)->questions);
    if (cluster->rounds.due == 0 && is_any_ready)
        redis_round_begin(&cluster->rounds);
}

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

static void take_view(struct cluster_peer *peer, const struct cluster_topology *view)
{
    peer->knows = is_of_cluster(peer->cluster, view);
    if (!peer->knows) {
        note_foreign(peer);
        return;
    }
    snprintf(peer->id, sizeof peer->id, "%s", view->myself->id);
    cluster_slots_take(peer->cluster, view, peer->address.host);
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
            take_view(peer, &view);
            cluster_topology_free(&view);
        }
    }
    redis_round_answered(&cluster->rounds);
}

/* Why no node of the cluster knows; NULL: one does. */
static const char *cluster_trouble(struct redis_cluster *cluster, char ret_text[CLUSTER_TROUBLE_BYTES])
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
        snprintf(ret_text, CLUSTER_TROUBLE_BYTES, "%s: %s", redis_link_where(first->questions), first->refusal);
    else
        snprintf(ret_text, CLUSTER_TROUBLE_BYTES, "no node answers: %s", redis_link_trouble(first->questions));
    return ret_text;
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
static bool settle(struct redis_cluster *cluster, const struct round_count *count,
                   char ret_trouble[CLUSTER_TROUBLE_BYTES])
{
    if (!cluster->is_settled && count->foreign > 0)
        snprintf(ret_trouble, CLUSTER_TROUBLE_BYTES, "%s and %s belong to different clusters: name the nodes of one",
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

static void round_end(void *arg)
{
    struct redis_cluster *cluster = arg;
    const struct round_count count = count_round(cluster);
    char text[CLUSTER_TROUBLE_BYTES], strangers[CLUSTER_TROUBLE_BYTES] = "";
    const char *trouble = cluster_trouble(cluster, text);

    if (settle(cluster, &count, strangers))
        cluster_slots_decide(cluster, 2 * count.knowing > cluster->peer_count, !count.is_one_new, trouble);
    else if (strangers[0] || (trouble && !count.is_one_new))
        cluster_slots_fail(cluster, strangers[0] ? strangers : trouble);
    if (count.knowing + count.foreign > 0)
        forget_unnamed(cluster);
}

/* Closing */

static void part_closed(struct redis_cluster *cluster)
{
    const struct callback closed = cluster->closed;

    if (--cluster->open > 0)
        return;
    cluster_slots_free(cluster);
    cluster_roster_set(&cluster->roster, NULL);
    secure_wipe(&cluster->target, sizeof cluster->target);
    free(cluster);
    callback_run(closed);
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_closed(((struct redis_rounds *)handle->data)->arg);
}

void redis_cluster_close(struct redis_cluster *cluster, void (*closed)(void *arg), void *arg)
{
    REQUIRE(!cluster->is_closing);
    cluster_slots_check_unused(cluster);
    cluster->is_closing = true;
    cluster->closed = (struct callback){closed, arg};
    while (!list_empty(&cluster->peers))
        peer_close(peer_of(list_first(&cluster->peers)));
    redis_rounds_stop(&cluster->rounds, on_timer_closed);
}

#include "redis/cluster.h"
#include "base/metrics.h"
#include "deadline.h"
#include "kernel.h"
#include "fake_redis.h"
#include "leak_guard.h"
#include "links.h"
#include "redis/cluster_topology.h"
#include "redis/link.h"
#include "test_loop.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    TIMEOUT_MS = 500, /* the longest that a cluster waits for a node */
    SLOW_MS = 75,
    NODES = 3,
    NOWHERE = NODES,
    LINKS = 2,
    REPLY_BYTES = 1024,
    REPLIES_MAX = 32,
    SLOT = 12182
};

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_C "cccccccccccccccccccccccccccccccccccccccc"
#define ID_D "dddddddddddddddddddddddddddddddddddddddd"
#define ID_E "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
#define ID_F "ffffffffffffffffffffffffffffffffffffffff"

static void ignore_sigpipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

TestSuite(redis_cluster, .init = ignore_sigpipe, .fini = leak_guard);
TestSuite(cluster_topology, .fini = leak_guard);

Test(cluster_topology, knows_the_slots_of_names)
{
    static const struct {
        const char *name;
        unsigned slot;
    } CASES[] = {
        {"123456789", 0x31C3},
        {"", 0},
        {"foo", 12182},
        {"{foo}bar", 12182},
        {"chatelaine:{foo}:key:{x}", 12182},
        {"foo{}{bar}", 8363},
        {"{foo", 13308},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_expect_eq(redis_slot_of(text_of(CASES[i].name)), CASES[i].slot, "%s: %u", CASES[i].name,
                     redis_slot_of(text_of(CASES[i].name)));
}

static bool parse(const char *nodes, bool with_names, struct cluster_topology *ret_topology)
{
    return cluster_topology_parse(text_of(nodes), with_names, ret_topology);
}

Test(cluster_topology, reads_what_a_node_says)
{
    static const char NODES_SAID[] =
        ID_A " 10.0.0.1:7000@17000,one.example,shard-id=1 myself,master - 0 0 5 connected 0-99 200 [300->-" ID_B
             "]\n" ID_B " ::1:7001@17001 master - 0 1 6 connected 100-199 16383\n" ID_C
             " 10.0.0.3:7002@17002,three.example slave,fail " ID_A " 0 1 5 disconnected\n" ID_D
             " :0@0 master,noaddr - 0 1 2 disconnected\n";
    struct cluster_topology topology;

    cr_assert(parse(NODES_SAID, false, &topology));
    const struct cluster_node *a = cluster_topology_owner(&topology, 200),
                              *b = cluster_topology_owner(&topology, 16383);
    cr_assert(a && a == topology.myself && a == cluster_topology_owner(&topology, 0));
    cr_assert(b && b == cluster_topology_owner(&topology, 150));
    cr_assert_null(cluster_topology_owner(&topology, 300));
    const struct cluster_move *move = cluster_topology_move(&topology, 300);
    cr_assert(move && !move->is_import);
    cr_expect_eq(cluster_topology_find(&topology, move->other_id), b);
    cr_assert_null(cluster_topology_move(&topology, 200));
    cr_expect_str_eq(a->address.host, "10.0.0.1");
    cr_expect_eq(a->address.port, 7000);
    cr_expect_eq(a->epoch, 5);
    cr_expect_str_eq(b->address.host, "::1");
    cr_expect_eq(b->address.port, 7001);
    cr_expect_eq(topology.nodes[3].address.port, 0);
    cr_expect_eq(cluster_topology_replicas(&topology, a), 2, "a replica, and a primary that has lost its slots");
    cr_expect_eq(cluster_topology_replicas(&topology, b), 1);
    cluster_topology_free(&topology);
    cr_assert(parse(NODES_SAID, true, &topology));
    cr_expect_str_eq(topology.myself->address.host, "one.example");
    cr_expect_str_eq(topology.nodes[1].address.host, "::1");
    cluster_topology_free(&topology);
}

/* A replica that still follows what its primary replaced may acknowledge for that one. */
Test(cluster_topology, counts_replicas_that_have_not_moved)
{
    struct cluster_topology topology;

    cr_assert(parse(ID_A " a:1@2 master,fail - 0 0 5 connected\n" ID_B
                         " b:1@2 myself,master - 0 0 6 connected 0-99\n" ID_C " c:1@2 slave " ID_A
                         " 0 0 5 connected\n" ID_D " d:1@2 master - 0 0 4 connected 100-199\n",
                    false, &topology));
    cr_expect_eq(cluster_topology_replicas(&topology, topology.myself), 2);
    cr_expect_eq(cluster_topology_replicas_usual(&topology), 0, "one for three");
    cluster_topology_free(&topology);
}

/* Neither a primary that has too many for a while, nor one that is about to get slots, nor one that was replaced says
 * how many there should be. */
Test(cluster_topology, knows_how_many_replicas_are_usual)
{
    static const char FOUR[] =
        ID_A " a:1@2 myself,master - 0 0 5 connected 0-99\n" ID_B " b:1@2 slave " ID_A " 0 0 5 connected\n" ID_C
             " c:1@2 slave " ID_A " 0 0 5 connected\n" ID_D " d:1@2 slave,fail " ID_A " 0 0 5 connected\n";
    static const char SPREAD[] =
        ID_A " a:1@2 myself,master - 0 0 5 connected 0-99\n" ID_B " b:1@2 slave " ID_A " 0 0 5 connected\n" ID_C
             " c:1@2 slave " ID_A " 0 0 5 connected\n" ID_D " d:1@2 master - 0 0 4 connected 100-199\n";
    struct cluster_topology topology;

    cr_assert(parse(FOUR, false, &topology));
    cr_expect_eq(cluster_topology_replicas_usual(&topology), 3);
    cluster_topology_free(&topology);
    cr_assert(parse(SPREAD, false, &topology));
    cr_expect_eq(cluster_topology_replicas(&topology, topology.myself), 2);
    cr_expect_eq(cluster_topology_replicas_usual(&topology), 1);
    cluster_topology_free(&topology);
}

Test(cluster_topology, refuses_what_is_malformed)
{
    static const char *const CASES[] = {
        "",
        "\n",
        "nonsense",
        ID_A " a:1@2 master - 0 0 5 connected 0-99",
        ID_A " a:1@2 myself,master - 0 0 5",
        ID_A "a a:1@2 myself,master - 0 0 5 connected",
        "A" ID_A " a:1@2 myself,master - 0 0 5 connected",
        "gggggggggggggggggggggggggggggggggggggggg a:1@2 myself,master - 0 0 5 connected",
        ID_A " a:1 myself,master - 0 0 5 connected",
        ID_A " a@2 myself,master - 0 0 5 connected",
        ID_A " a:65536@2 myself,master - 0 0 5 connected",
        ID_A " a:b@2 myself,master - 0 0 5 connected",
        ID_A " a:1@2 myself,master x 0 0 5 connected",
        ID_A " a:1@2 myself,master - 0 0 -5 connected",
        ID_A " a:1@2 myself,master - 0 0 9223372036854775808 connected",
        ID_A " a:1@2 myself,master - 0 0 5 connected 16384",
        ID_A " a:1@2 myself,master - 0 0 5 connected 5-4",
        ID_A " a:1@2 myself,master - 0 0 5 connected 5-",
        ID_A " a:1@2 myself,master - 0 0 5 connected -5",
        ID_A " a:1@2 myself,master - 0 0 5 connected 1,2",
        ID_A " a:1@2 myself,master - 0 0 5 connected [7]",
        ID_A " a:1@2 myself,master - 0 0 5 connected [7->-" ID_B,
        ID_A " a:1@2 myself,master - 0 0 5 connected [7->-b]",
        ID_A " a:1@2 myself,master - 0 0 5 connected [7-x-" ID_B "]",
        ID_A " a:1@2 myself,master - 0 0 5 connected [16384-<-" ID_B "]",
        ID_A " a:1@2 myself,master - 0 0 5 connected\n" ID_B " b:1@2 myself,master - 0 0 5 connected",
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct cluster_topology topology;

        cr_expect(!parse(CASES[i], false, &topology), "%s", CASES[i]);
    }
}

Test(cluster_topology, bounds_names_nodes_and_slots)
{
    static const char LINE[] = ID_A " a:1@2 master - 0 0 5 connected\n", MYSELF[] = "myself,master";
    static char nodes[(CLUSTER_NODES_MAX + 1) * sizeof LINE + 200000];
    struct cluster_topology topology;
    size_t used = (size_t)snprintf(nodes, sizeof nodes, ID_A " a:1@2 %s - 0 0 5 connected\n", MYSELF);

    for (unsigned i = 1; i < CLUSTER_NODES_MAX; i++, used += sizeof LINE - 1)
        memcpy(nodes + used, LINE, sizeof LINE);
    cr_assert(parse(nodes, false, &topology));
    cr_assert_eq(topology.node_count, CLUSTER_NODES_MAX);
    cluster_topology_free(&topology);
    memcpy(nodes + used, LINE, sizeof LINE);
    cr_assert(!parse(nodes, false, &topology));
    used = (size_t)snprintf(nodes, sizeof nodes, ID_A " a:1@2 %s - 0 0 5 connected", MYSELF);
    for (unsigned i = 0; i <= REDIS_SLOTS; i++)
        used += (size_t)snprintf(nodes + used, sizeof nodes - used, " %u", i % REDIS_SLOTS);
    cr_assert(!parse(nodes, false, &topology));
    snprintf(nodes, sizeof nodes, ID_A " %0300d:1@2 %s - 0 0 5 connected", 0, MYSELF);
    cr_assert(!parse(nodes, false, &topology));
}

/* Three nodes, and two links that follow one slot. Nodes are told what to say. */
static struct world {
    uv_loop_t loop;
    struct fake_redis *nodes[NODES];
    unsigned at[NODES];       /* which of these a node is; NOWHERE: it is not part of the cluster */
    const char *moves[NODES]; /* what a node, a primary then, says of moves; NULL: nothing */
    struct redis_cluster *cluster;
    struct redis_resolver *resolver;
    struct redis_link *links[LINKS];
    unsigned answered;
    enum redis_outcome outcome;
    bool is_cluster_closed;
    char replies[REPLIES_MAX][REPLY_BYTES]; /* rules keep pointers to them */
    unsigned reply_count;
} w;

static const char *ids[NODES];

static void rule(unsigned node, const char *command, const char *answer)
{
    fake_redis_rule(w.nodes[w.at[node]], &(struct fake_rule){command, FAKE_ANSWER, answer, 0, 0, false});
}

/* From now on, the node says that the owner has the slot, with that epoch. */
static void say(unsigned node, unsigned owner, unsigned epoch)
{
    char nodes[REPLY_BYTES / 2];
    size_t used = 0;

    for (unsigned i = 0; i < NODES && w.at[i] != NOWHERE; i++) {
        bool is_primary = i == owner || w.moves[i];

        used += (size_t)snprintf(nodes + used, sizeof nodes - used, "%s 127.0.0.1:%u@1 %s%s %s 0 0 %u connected%s%s\n",
                                 ids[i], fake_redis_port(w.nodes[w.at[i]]), i == node ? "myself," : "",
                                 is_primary ? "master" : "slave", is_primary ? "-" : ids[owner], epoch,
                                 i == owner ? " 12000-13000" : "", i == node && w.moves[i] ? w.moves[i] : "");
    }
    cr_assert_lt(w.reply_count, REPLIES_MAX);
    snprintf(w.replies[w.reply_count], REPLY_BYTES, "$%zu\r\n%s\r\n", used, nodes);
    rule(node, "CLUSTER NODES", w.replies[w.reply_count++]);
}

static void say_all(unsigned owner, unsigned epoch)
{
    for (unsigned i = 0; i < NODES && w.at[i] != NOWHERE; i++)
        say(i, owner, epoch);
}

static void name_nodes(const char *first, const char *second, const char *third)
{
    ids[0] = first;
    ids[1] = second;
    ids[2] = third;
}

/* The node says that it is a cluster by itself. */
static void say_alone(unsigned node, const char *id, unsigned epoch)
{
    char nodes[REPLY_BYTES / 2];
    size_t used = (size_t)snprintf(nodes, sizeof nodes, "%s 127.0.0.1:%u@1 myself,master - 0 0 %u connected 0-16383\n",
                                   id, fake_redis_port(w.nodes[node]), epoch);

    cr_assert_lt(w.reply_count, REPLIES_MAX);
    snprintf(w.replies[w.reply_count], REPLY_BYTES, "$%zu\r\n%s\r\n", used, nodes);
    rule(node, "CLUSTER NODES", w.replies[w.reply_count++]);
}

static void open_nodes(void)
{
    memset(&w, 0, sizeof w);
    name_nodes(ID_A, ID_B, ID_C);
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    for (unsigned i = 0; i < NODES; i++) {
        w.nodes[i] = fake_redis_create(&w.loop, NULL);
        w.at[i] = i;
    }
}

/* seeds: how many of the nodes, the first ones. */
static void open_links(unsigned seeds)
{
    struct redis_target target = {.found = REDIS_BY_CLUSTER, .seed_count = seeds, .login = {"app", "of-all", 0}};
    struct redis_link_settings settings = {
        .name = "link", .timeout_ms = PATIENCE_MS, .backoff_max_ms = 100, .calls_max = 8, .to_master = true};

    for (unsigned i = 0; i < seeds; i++)
        target.seeds[i] = (struct redis_address){"127.0.0.1", fake_redis_port(w.nodes[i])};
    w.cluster = redis_cluster_create(&w.loop, &target, NULL, TIMEOUT_MS);
    settings.resolver = w.resolver = redis_cluster_resolver(w.cluster, SLOT);
    for (unsigned i = 0; i < LINKS; i++)
        w.links[i] = redis_link_create(&w.loop, &target, &settings, NULL, NULL);
}

static void on_cluster_closed(void *arg)
{
    (void)arg;
    w.is_cluster_closed = true;
}

static void close_all(void)
{
    links_close(&w.loop, w.links, LINKS);
    redis_cluster_close(w.cluster, on_cluster_closed, NULL);
    cr_assert(!w.is_cluster_closed);
    cr_assert(test_loop_until_set(&w.loop, &w.is_cluster_closed, PATIENCE_MS));
    for (unsigned i = 0; i < NODES; i++)
        fake_redis_close(w.nodes[i]);
    cr_assert(test_loop_finish(&w.loop));
}

static void until(test_loop_predicate *predicate, void *arg)
{
    cr_assert(test_loop_until(&w.loop, predicate, arg, PATIENCE_MS), "%s", redis_link_trouble(w.links[0]));
}

static unsigned wanted_node;

static bool are_links_at(void *arg)
{
    char where[64];

    (void)arg;
    snprintf(where, sizeof where, "127.0.0.1:%u", fake_redis_port(w.nodes[wanted_node]));
    for (unsigned i = 0; i < LINKS; i++)
        if (!redis_link_is_ready(w.links[i]) || strcmp(redis_link_where(w.links[i]), where) != 0)
            return false;
    return true;
}

static void until_links_at(unsigned node)
{
    wanted_node = node;
    until(are_links_at, NULL);
}

static const char *wanted_trouble;

static bool has_trouble(void *arg)
{
    (void)arg;
    return strstr(redis_link_trouble(w.links[0]), wanted_trouble);
}

static void until_trouble(const char *trouble)
{
    wanted_trouble = trouble;
    until(has_trouble, NULL);
}

struct asked {
    unsigned node, times;
};

static bool is_asked(void *asked)
{
    const struct asked *a = asked;

    return fake_redis_count(w.nodes[a->node], "CLUSTER NODES") >= a->times;
}

/* Until that many more rounds have ended. */
static void for_rounds(unsigned node, unsigned rounds)
{
    until(is_asked, &(struct asked){node, fake_redis_count(w.nodes[node], "CLUSTER NODES") + rounds + 1});
}

static bool is_asked_for_many(void *asked)
{
    w.resolver->ask(w.resolver);
    return is_asked(asked);
}

/* The same, as fast as if many links asked. */
static void hurry_rounds(unsigned node, unsigned rounds)
{
    until(is_asked_for_many, &(struct asked){node, fake_redis_count(w.nodes[node], "CLUSTER NODES") + rounds + 1});
}

/* Links that have found the first node, as all nodes say. */
static void open_at_first(unsigned seeds)
{
    open_nodes();
    say_all(0, 5);
    open_links(seeds);
    until_links_at(0);
}

Test(redis_cluster, leads_all_links_to_the_primary_of_the_slot)
{
    open_nodes();
    say_all(2, 7);
    open_links(1);
    until_links_at(2);
    cr_assert_eq(fake_redis_count(w.nodes[2], "ROLE"), LINKS, "each looks at its role");
    cr_assert_eq(fake_redis_count(w.nodes[2], "AUTH app of-all"), fake_redis_count(w.nodes[2], "AUTH"));
    cr_assert_gt(fake_redis_count(w.nodes[0], "AUTH app of-all"), 0);
    cr_assert_eq(metric_values[METRIC_REDIS_SWITCHES], 0);
    close_all();
}

Test(redis_cluster, a_node_is_believed_about_itself_alone)
{
    open_nodes();
    say_all(1, 7);
    rule(1, "CLUSTER NODES", "-LOADING Redis is loading the dataset in memory\r\n");
    open_links(3);
    until_trouble("the cluster: its primary 127.0.0.1:");
    cr_assert(strstr(redis_link_trouble(w.links[0]), "does not answer"));
    cr_assert_eq(fake_redis_count(w.nodes[1], "ROLE"), 0);
    say(1, 1, 7);
    until_links_at(1);
    close_all();
}

Test(redis_cluster, moves_all_links_when_another_primary_takes_over)
{
    open_at_first(1);
    say(1, 1, 6); /* the old one and the third do not know yet */
    until_links_at(1);
    cr_assert_eq(metric_values[METRIC_REDIS_SWITCHES], 1);
    close_all();
}

/* As a pod does whose address changes. */
Test(redis_cluster, a_node_that_comes_back_elsewhere_is_asked_there)
{
    open_nodes();
    w.at[2] = NOWHERE;
    say_all(1, 5);
    open_links(1);
    until_links_at(1);
    fake_redis_go_away(w.nodes[1]);
    w.at[1] = 2;
    say_all(1, 5);
    until_links_at(2);
    close_all();
}

/* The second was promoted and is down again; the first still believes that it serves the slot. */
Test(redis_cluster, is_not_led_back_by_one_that_was_away)
{
    open_at_first(3);
    say(1, 1, 6);
    say(2, 1, 6);
    until_links_at(1);
    fake_redis_go_away(w.nodes[1]);
    for_rounds(0, 3);
    until_trouble("its primary 127.0.0.1:");
    cr_assert_eq(fake_redis_count(w.nodes[0], "ROLE"), LINKS, "nobody returned to it");
    fake_redis_come_back(w.nodes[1]);
    until_links_at(1);
    close_all();
}

/* A node that starts knows nothing of what was, but the others do. The second one, of which it hears from the first,
 * answers last. */
Test(redis_cluster, a_higher_epoch_that_others_know_of_counts)
{
    open_nodes();
    say(1, 1, 5);
    say(0, 2, 6);
    rule(2, "CLUSTER NODES", "-ERR not now\r\n");
    fake_redis_rule(w.nodes[1], &(struct fake_rule){"CLUSTER NODES", FAKE_ANSWER, w.replies[0], SLOW_MS, 0, false});
    open_links(1);
    for_rounds(1, 3);
    until_trouble("its primary 127.0.0.1:");
    cr_assert_eq(fake_redis_count(w.nodes[1], "ROLE"), 0);
    close_all();
}

Test(redis_cluster, follows_a_cluster_that_was_set_up_anew)
{
    open_nodes();
    say_all(0, 50);
    open_links(3);
    until_links_at(0);
    say_all(1, 2);
    until_links_at(1);
    close_all();
}

Test(redis_cluster, follows_a_cluster_of_other_nodes_at_the_same_addresses)
{
    open_nodes();
    say_all(0, 50);
    open_links(3);
    until_links_at(0);
    name_nodes(ID_D, ID_E, ID_F);
    say_all(1, 2);
    until_links_at(1);
    close_all();
}

/* Otherwise whichever has the higher epoch would be taken for the one that is meant. */
Test(redis_cluster, seeds_of_different_clusters_are_refused)
{
    char told[160];

    open_nodes();
    say_all(0, 5);
    say_alone(2, ID_D, 9);
    open_links(3);
    snprintf(told, sizeof told,
             "the cluster: 127.0.0.1:%u and 127.0.0.1:%u belong to different clusters: name the "
             "nodes of one",
             fake_redis_port(w.nodes[0]), fake_redis_port(w.nodes[2]));
    until_trouble(told);
    for_rounds(0, 3);
    for (unsigned i = 0; i < NODES; i++)
        cr_expect_eq(fake_redis_count(w.nodes[i], "ROLE"), 0, "%u", i);
    say(2, 0, 5);
    until_links_at(0);
    close_all();
}

/* As when its address was that of a node of ours. */
Test(redis_cluster, a_node_of_another_cluster_is_ignored_later)
{
    open_at_first(2);
    for_rounds(2, 1);
    say_alone(2, ID_D, 9);
    say_alone(1, ID_E, 9);
    for_rounds(1, 3);
    cr_expect(are_links_at(NULL));
    cr_expect_eq(fake_redis_count(w.nodes[1], "ROLE") + fake_redis_count(w.nodes[2], "ROLE"), 0);
    say(1, 1, 6);
    say(0, 1, 6);
    until_links_at(1);
    close_all();
}

/* It has not joined yet, or has left: nothing that it says concerns a slot. */
Test(redis_cluster, a_seed_that_has_joined_no_cluster_is_no_obstacle)
{
    open_nodes();
    w.at[2] = NOWHERE;
    say_all(0, 5);
    fake_redis_rule(w.nodes[2],
                    &(struct fake_rule){"CLUSTER NODES", FAKE_ANSWER,
                                        "$79\r\n" ID_D " a:1@2 myself,master - 0 0 9 connected\n\r\n", 0, 0, false});
    open_links(3);
    until_links_at(0);
    close_all();
}

static void on_called(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)arg, (void)reply;
    w.answered++;
    w.outcome = outcome;
}

static bool has_answers(void *count)
{
    return w.answered >= *(unsigned *)count;
}

static void call(unsigned link, const char *command, unsigned answers)
{
    redis_link_call(w.links[link], 1, (struct text[]){text_of(command)}, on_called, NULL);
    until(has_answers, &answers);
    cr_assert_eq(w.outcome, REDIS_REPLIED);
}

/* Nothing follows the redirection: the cluster says where the primary is. */
Test(redis_cluster, a_link_that_is_told_moved_asks_again)
{
    static const char *const ERRORS[] = {"-MOVED 12182 127.0.0.1:1\r\n", "-CLUSTERDOWN Hash slot not served\r\n"};
    unsigned count = 0;

    for (unsigned i = 0; i < 2; i++) {
        open_nodes();
        say_all(0, 5);
        open_links(3);
        until_links_at(0);
        rule(0, "GET", ERRORS[i]);
        say_all(1, 5); /* the epoch is the same, so nothing is told */
        call(0, "GET", 1);
        until_trouble(i == 0 ? "it does not serve the slot" : "it says that the cluster is down: see CLUSTER INFO");
        count++;
        until_links_at(1);
        close_all();
    }
    cr_assert_eq(count, 2);
}

Test(redis_cluster, a_link_stays_while_a_slot_is_being_moved)
{
    open_at_first(3);
    rule(0, "GET", "-ASK 12182 127.0.0.1:1\r\n");
    rule(0, "MGET", "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
    call(0, "GET", 1);
    call(0, "MGET", 2);
    call(0, "PING", 3);
    cr_assert_eq(fake_redis_count(w.nodes[0], "ROLE"), LINKS);
    close_all();
}

#define TO_C " [12182->-" ID_C "]"
#define FROM_A " [12182-<-" ID_A "]"

/* More than those in which a node is forgotten that nobody names. */
enum { ROUNDS_OF_MEMORY = 40 };

/* The replica that takes over from the source knows nothing of the move, and would take what it has for everything. */
Test(redis_cluster, half_of_a_slot_is_served_by_nobody)
{
    open_nodes();
    w.moves[0] = TO_C;
    w.moves[2] = FROM_A;
    say_all(0, 5);
    open_links(1); /* who imports is asked because the source names it */
    until_links_at(0);
    for_rounds(0, 3);
    cr_assert(are_links_at(NULL), "the source refuses by itself");
    fake_redis_go_away(w.nodes[0]);
    w.moves[0] = NULL;
    say(1, 1, 6);
    until_trouble("its primary does not know: finish the move");
    hurry_rounds(1, 2 * ROUNDS_OF_MEMORY); /* though nobody names the node that imports any more */
    fake_redis_go_away(w.nodes[2]);
    hurry_rounds(1, ROUNDS_OF_MEMORY); /* in less time than it may be silent */
    cr_assert_eq(fake_redis_count(w.nodes[1], "ROLE"), 0);
    w.moves[1] = TO_C;
    say(1, 1, 6);
    until_links_at(1);
    close_all();
}

Test(redis_cluster, links_leave_half_of_a_slot)
{
    open_at_first(3);
    w.moves[2] = FROM_A;
    say(2, 0, 5);
    until_trouble("its primary does not know: finish the move");
    w.moves[2] = NULL;
    say(2, 0, 5);
    until_links_at(0);
    close_all();
}

Test(redis_cluster, tells_why_there_is_no_primary)
{
    open_nodes();
    for (unsigned i = 0; i < NODES; i++)
        rule(i, "CLUSTER NODES", "-NOPERM User app has no permissions to run the 'cluster|nodes' command\r\n");
    open_links(3);
    until_trouble(": its ACL forbids CLUSTER NODES: grant this user +cluster|nodes");
    for (unsigned i = 0; i < NODES; i++)
        rule(i, "CLUSTER NODES", "-ERR This instance has cluster support disabled\r\n");
    until_trouble("it is not part of a cluster: use redis://");
    for (unsigned i = 0; i < NODES; i++)
        rule(i, "CLUSTER NODES", "$8\r\nnonsense\r\n");
    until_trouble("its answer to CLUSTER NODES is malformed");
    for (unsigned i = 0; i < NODES; i++)
        rule(i, "CLUSTER NODES", "$78\r\n" ID_A " a:1@2 myself,master - 0 0 5 connected\r\n");
    until_trouble("the cluster: no node serves slot 12182");
    for (unsigned i = 0; i < NODES; i++)
        fake_redis_go_away(w.nodes[i]);
    until_trouble("the cluster: no node answers: 127.0.0.1:");
    close_all();
}

Test(redis_cluster, closes_while_a_question_is_open)
{
    open_nodes();
    for (unsigned i = 0; i < NODES; i++)
        fake_redis_rule(w.nodes[i], &(struct fake_rule){.command = "CLUSTER NODES", .action = FAKE_SILENT});
    open_links(3);
    until(is_asked, &(struct asked){0, 1});
    close_all();
}

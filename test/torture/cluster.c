#include "cluster.h"
#include "netns.h"
#include "shards.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const char *cluster_program(const struct cluster *cluster, unsigned node)
{
    return cluster->programs[node] ? cluster->programs[node] : node_binary();
}

/* Of one node, up to a NULL. */
static void list_args(struct cluster *cluster, unsigned node, const char *ret_args[CLUSTER_ARGS_MAX + 3])
{
    size_t count = 0;

    for (; cluster->args[count]; count++)
        ret_args[count] = cluster->args[count];
    if (cluster->has_tables) {
        snprintf(cluster->tables[node], sizeof cluster->tables[node], "%.150s/table%u", cluster->fixture.folder, node);
        ret_args[count++] = "--table";
        ret_args[count++] = cluster->tables[node];
    }
    ret_args[count] = NULL;
}

void cluster_node_start(struct cluster *cluster, unsigned node)
{
    struct fixture *fixture = &cluster->fixture;
    const char *args[CLUSTER_ARGS_MAX + 3];
    char name[16];

    list_args(cluster, node, args);
    snprintf(name, sizeof name, "node%u", node);
    netns_enter(cluster->netns, node);
    node_start_program(&fixture->nodes[node], cluster_program(cluster, node), fixture->folder, name,
                       cluster->urls[node], fixture->master_key_path, args);
    netns_leave(cluster->netns);
    if (atomic_fetch_add(&cluster->incarnations[node], 1) + 1 == CLUSTER_INCARNATIONS_MAX)
        test_give_up("node %u was started too often", node);
    atomic_store(&cluster->internal_ports[node], fixture->nodes[node].internal_port);
    atomic_store(&cluster->ports[node], fixture->nodes[node].port);
}

static void node_ends(struct cluster *cluster, unsigned node)
{
    atomic_store(&cluster->ended_ms[node][cluster_incarnation(cluster, node)], deadline_now_ms());
}

void cluster_node_kill(struct cluster *cluster, unsigned node)
{
    node_ends(cluster, node);
    node_kill(&cluster->fixture.nodes[node]);
    atomic_store(&cluster->ports[node], 0);
}

/* Clients go on asking it while it drains. */
void cluster_node_drain(struct cluster *cluster, unsigned node)
{
    node_ends(cluster, node);
    node_stop(&cluster->fixture.nodes[node]);
    atomic_store(&cluster->ports[node], 0);
}

unsigned cluster_incarnation(struct cluster *cluster, unsigned node)
{
    return atomic_load(&cluster->incarnations[node]);
}

int64_t cluster_ended_ms(struct cluster *cluster, unsigned node, unsigned incarnation)
{
    return atomic_load(&cluster->ended_ms[node][incarnation]);
}

unsigned cluster_find_dead(struct cluster *cluster)
{
    unsigned node;
    bool is_dead = false;

    for (node = 0; node < CLUSTER_NODES && !is_dead; node++) {
        if (pthread_mutex_trylock(&cluster->node_locks[node]) != 0)
            continue;
        is_dead = process_wait(&cluster->fixture.nodes[node].process, 0);
        pthread_mutex_unlock(&cluster->node_locks[node]);
        if (is_dead)
            return node;
    }
    return CLUSTER_NODES;
}

static void prepare_parts(struct cluster *cluster, unsigned lease_ms)
{
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        pthread_mutex_init(&cluster->node_locks[i], NULL);
    pthread_mutex_init(&cluster->redis_lock, NULL);
    snprintf(cluster->lease_ms, sizeof cluster->lease_ms, "%u", lease_ms);
    setenv("CHATELAINE_KEYS_PER_DAY", "10000000", 1); /* nodes of 0.3 do not know the option */
    cluster->args[0] = "--audit-max";
    cluster->args[1] = "10000000";
    cluster->args[2] = "--lease-ms";
    cluster->args[3] = cluster->lease_ms;
    cluster->args[4] = "--changes-per-minute";
    cluster->args[5] = "10000000";
    cluster->args[6] = "--keys-max";
    cluster->args[7] = "10000000";
    cluster->args[8] = "--session-idle-ms"; /* people sign in once, however long it takes */
    cluster->args[9] = "604800000";
    cluster->args[10] = "--drain-ms"; /* clients go on asking, so a drain lasts as long */
    cluster->args[11] = "1000";
}

/* The fixture's patience is not that of the nodes and commands that are tortured. */
static void use_own_timeout(void)
{
    unsetenv("CHATELAINE_REDIS_TIMEOUT_MS");
}

static void prepare(struct cluster *cluster, unsigned lease_ms)
{
    prepare_parts(cluster, lease_ms);
    fixture_start(&cluster->fixture, 0, NULL);
    use_own_timeout();
    if (cluster->programs[0]) /* of an earlier version, which refuses what new stores begin with */
        redis_server_tell(&cluster->fixture.redis, "SET", "chatelaine:schema", "1", NULL);
    cluster->accounts[0] = (struct cluster_account){cluster->fixture.manager, cluster->fixture.user};
    cluster->account_count = 1;
}

/* For commands as well as for nodes. */
static void set_for_all(const char *variable, unsigned value)
{
    char text[16];

    snprintf(text, sizeof text, "%u", value);
    if (setenv(variable, text, 1) != 0)
        abort();
}

void cluster_start(struct cluster *cluster, unsigned lease_ms, struct netns *netns)
{
    const char *addresses[CLUSTER_NODES];

    cluster->netns = netns;
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        addresses[i] = netns ? netns_address(netns, i) : "127.0.0.1";
    prepare(cluster, lease_ms);
    redis_server_open_port(&cluster->fixture.redis);
    redis_server_start(&cluster->elsewhere, &(struct redis_server_options){.tcp = true});
    cluster->proxy = redis_proxy_start(cluster->fixture.redis.socket_path, CLUSTER_NODES, addresses);
    for (unsigned i = 0; i < CLUSTER_NODES; i++) {
        snprintf(cluster->urls[i], sizeof cluster->urls[i], "redis://%s:%u", addresses[i],
                 redis_proxy_port(cluster->proxy, i));
        cluster_node_start(cluster, i);
    }
    cluster->fixture.node_count = CLUSTER_NODES;
}

void cluster_start_replicated(struct cluster *cluster, unsigned lease_ms, unsigned min_replicas)
{
    cluster->min_replicas = min_replicas;
    prepare(cluster, lease_ms);
    cluster->fixture.min_replicas = min_replicas;
    cluster->proxy = redis_proxy_start(cluster->fixture.redis.socket_path, 1, (const char *const[]){"127.0.0.1"});
    redis_server_put_behind(&cluster->fixture.redis, redis_proxy_port(cluster->proxy, 0));
    sentinels_start(&cluster->sentinels, &cluster->fixture.redis, SENTINELS_REDISES_MAX - 1);
    snprintf(cluster->fixture.redis.url, sizeof cluster->fixture.redis.url, "%s", cluster->sentinels.url);
    set_for_all("CHATELAINE_MIN_REPLICAS", min_replicas);
    for (unsigned i = 0; i < CLUSTER_NODES; i++) {
        snprintf(cluster->urls[i], sizeof cluster->urls[i], "%s",
                 i == 0 ? cluster->sentinels.url_of_first : cluster->sentinels.url);
        cluster_node_start(cluster, i);
    }
    cluster->fixture.node_count = CLUSTER_NODES;
}

static void add_accounts(struct cluster *cluster)
{
    fixture_open_store(&cluster->fixture);
    for (unsigned i = 0; i < SHARDS_PARTITIONS; i++) {
        struct cluster_account *account = &cluster->accounts[i];
        char id[ID_TEXT_BYTES], email[32];

        snprintf(email, sizeof email, "owner%u@clinic.test", i);
        fixture_add_account_in(&cluster->fixture, i, id);
        fixture_add_person(&cluster->fixture, id, email, ROLE_OWNER, &account->user);
        fixture_add_key(&cluster->fixture, id, KEY_API, MODE_LIVE, SCOPE_ALL, &account->manager);
    }
    fixture_close_store(&cluster->fixture);
    cluster->account_count = SHARDS_PARTITIONS;
}

void cluster_start_sharded(struct cluster *cluster, unsigned lease_ms, struct shards *shards, struct netns *netns)
{
    cluster->netns = netns;
    cluster->shards = shards;
    prepare_parts(cluster, lease_ms);
    shards_start(shards, netns, CLUSTER_NODES);
    set_for_all("CHATELAINE_PARTITIONS", SHARDS_PARTITIONS);
    set_for_all("CHATELAINE_MIN_REPLICAS", 1);
    fixture_start_in_cluster(&cluster->fixture, shards->servers.url, 1);
    add_accounts(cluster);
    use_own_timeout();
    for (unsigned i = 0; i < CLUSTER_NODES; i++) {
        snprintf(cluster->urls[i], sizeof cluster->urls[i], "%s", shards->servers.url);
        cluster_node_start(cluster, i);
    }
    cluster->fixture.node_count = CLUSTER_NODES;
}

void cluster_stop(struct cluster *cluster)
{
    fixture_stop(&cluster->fixture);
    if (cluster->proxy)
        redis_proxy_stop(cluster->proxy);
    if (cluster->elsewhere.port)
        redis_server_stop(&cluster->elsewhere);
    if (cluster->sentinels.redis_count > 0)
        sentinels_stop(&cluster->sentinels);
    if (cluster->shards)
        shards_stop(cluster->shards);
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        pthread_mutex_destroy(&cluster->node_locks[i]);
    pthread_mutex_destroy(&cluster->redis_lock);
}

/* Counted first: a fault that finds nothing open knows that nothing will be begun. */
bool cluster_other_begins(struct cluster *cluster)
{
    atomic_fetch_add(&cluster->others_open, 1);
    if (!atomic_load(&cluster->only_revocations))
        return true;
    atomic_fetch_sub(&cluster->others_open, 1);
    return false;
}

void cluster_other_ends(struct cluster *cluster)
{
    atomic_fetch_sub(&cluster->others_open, 1);
}

int cluster_open_socket(void *arg, unsigned node, uint16_t *ret_port)
{
    struct cluster *cluster = arg;

    *ret_port = (uint16_t)atomic_load(&cluster->ports[node]);
    if (*ret_port == 0)
        return -1;
    netns_enter(cluster->netns, node);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    netns_leave(cluster->netns);
    return fd;
}

int cluster_call(struct cluster *cluster, unsigned node, const struct http_call *call, struct http_answer *ret_answer)
{
    netns_enter(cluster->netns, node);
    int status = fixture_call(&cluster->fixture, node, call, ret_answer);
    netns_leave(cluster->netns);
    return status;
}

long cluster_metric(struct cluster *cluster, unsigned node, const char *line_start)
{
    netns_enter(cluster->netns, node);
    long value = fixture_metric(&cluster->fixture, node, line_start);
    netns_leave(cluster->netns);
    return value;
}

int cluster_login(struct cluster *cluster, unsigned node, const struct fixture_user *user,
                  struct fixture_session *ret_session, struct http_answer *ret_answer)
{
    netns_enter(cluster->netns, node);
    int status = fixture_login(&cluster->fixture, node, user, FIXTURE_PASSWORD, NULL, ret_session, ret_answer);
    netns_leave(cluster->netns);
    return status;
}

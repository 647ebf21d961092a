#include "failover.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

enum {
    STEP_MS = 10,
    GIVE_UP_MS = 60000,
    WHOLE_WITHIN_MS = 60000, /* Sentinels wait some ten seconds before they tell a master of old that it is none */
    STOPPED_FOR_MS = 6000,   /* long enough for a failover, and a little into what follows it */
};

static struct http_answer answer;

static int64_t since(int64_t start_ms)
{
    return deadline_now_ms() - start_ms;
}

/* Until the call is answered so by that node. */
static void insist(struct cluster *cluster, unsigned node, const struct http_call *call, int status, int64_t start_ms)
{
    while (cluster_call(cluster, node, call, &answer) != status) {
        if (since(start_ms) > GIVE_UP_MS)
            test_give_up("node %u still answers %d: %s", node, answer.status, answer.body);
        poll(NULL, 0, STEP_MS);
    }
}

/* Keys of live mode, which the history's own are not, for nobody will look for them. */
static void measure(struct cluster *cluster, const char *probe_id, int64_t start_ms, struct failover *ret_failover)
{
    const char *manager = cluster->fixture.manager.secret;
    const struct http_call check = {.target = "/v1/whoami", .bearer = manager};
    const struct http_call write = {.method = "POST",
                                    .target = "/v1/api_keys",
                                    .bearer = manager,
                                    .json = "{\"name\":\"failover\",\"mode\":\"live\",\"scopes\":[\"usage:read\"]}"};
    char target[64];

    while (sentinels_master(&cluster->sentinels) == ret_failover->from) {
        if (since(start_ms) > GIVE_UP_MS)
            test_give_up("the Sentinels name no other master");
        poll(NULL, 0, STEP_MS);
    }
    ret_failover->to = sentinels_master(&cluster->sentinels);
    ret_failover->named_ms = since(start_ms);
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        insist(cluster, node, &check, 200, start_ms);
    ret_failover->checks_ms = since(start_ms);
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        insist(cluster, node, &write, 201, start_ms);
    ret_failover->writes_ms = since(start_ms);
    snprintf(target, sizeof target, "/v1/api_keys/%s", probe_id);
    insist(cluster, ret_failover->to % CLUSTER_NODES,
           &(struct http_call){.method = "DELETE", .target = target, .bearer = manager}, 200, start_ms);
    ret_failover->revokes_ms = since(start_ms);
}

void failover_run(struct cluster *cluster, struct history *history, unsigned round, struct failover *ret_failover)
{
    struct sentinels *sentinels = &cluster->sentinels;
    bool is_kill = round % 2 == 0;
    struct fixture_key probe;

    *ret_failover = (struct failover){.how = is_kill ? "kill -9" : "stop", .from = sentinels_master(sentinels)};
    struct redis_server *lost = sentinels->redises[ret_failover->from];
    fixture_create_key(&cluster->fixture, 0, "{\"name\":\"failover\",\"mode\":\"live\"}", &probe);
    size_t fault =
        history_fault_begin(history, "round %u: %s of redis %u", round, ret_failover->how, ret_failover->from);
    int64_t start_ms = deadline_now_ms();
    if (is_kill)
        redis_server_kill(lost);
    else
        redis_server_freeze(lost);
    measure(cluster, probe.id, start_ms, ret_failover);

    if (!is_kill && since(start_ms) < STOPPED_FOR_MS)
        poll(NULL, 0, (int)(STOPPED_FOR_MS - since(start_ms)));
    int64_t back_ms = deadline_now_ms();
    if (is_kill)
        redis_server_restart(lost);
    else
        redis_server_thaw(lost);
    if (!sentinels_wait_whole(sentinels, WHOLE_WITHIN_MS))
        history_violation(history, "the lost master does not become a replica", ret_failover->how);
    ret_failover->returned_ms = since(back_ms);
    history_fault_end(history, fault);
    if (ret_failover->writes_ms > FAILOVER_LIMIT_MS)
        history_violation(history, "writes took too long to resume", ret_failover->how);
}

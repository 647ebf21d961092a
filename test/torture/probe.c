#include "probe.h"

#include <poll.h>
#include <stdio.h>

enum { STEP_MS = 10 };

static struct http_answer answer;

static const char NEW_KEY[] = "{\"name\":\"failover\",\"mode\":\"live\",\"scopes\":[\"usage:read\"]}";

int64_t probe_since(int64_t start_ms)
{
    return deadline_now_ms() - start_ms;
}

/* Until the call is answered so by that node. One that is away is asked as soon as it is back. */
static void insist(struct cluster *cluster, unsigned node, const struct http_call *call, int status, int64_t start_ms)
{
    int answered;

    do {
        pthread_mutex_lock(&cluster->node_locks[node]);
        answered = cluster_call(cluster, node, call, &answer);
        pthread_mutex_unlock(&cluster->node_locks[node]);
        if (probe_since(start_ms) > PROBE_GIVE_UP_MS)
            test_give_up("node %u still answers %d: %s", node, answer.status, answer.body);
        if (answered != status)
            poll(NULL, 0, STEP_MS);
    } while (answered != status);
}

static struct http_call call_to_create(const struct cluster_account *account)
{
    return (struct http_call){
        .method = "POST", .target = "/v1/api_keys", .bearer = account->manager.secret, .json = NEW_KEY};
}

void probe_make(struct cluster *cluster, const struct cluster_account *account, char ret_id[ID_TEXT_BYTES])
{
    const struct http_call write = call_to_create(account);

    insist(cluster, 0, &write, 201, deadline_now_ms());
    if (!http_answer_json(&answer, "id", ret_id, ID_TEXT_BYTES))
        test_give_up("a creation without id: %s", answer.body);
}

void probe_measure(struct cluster *cluster, const struct cluster_account *account, unsigned first_node,
                   const char *probe_id, int64_t start_ms, struct probe_times *ret_times)
{
    const struct http_call check = {.target = "/v1/whoami", .bearer = account->manager.secret};
    const struct http_call write = call_to_create(account);
    char target[64];

    for (unsigned node = first_node; node < CLUSTER_NODES; node++)
        insist(cluster, node, &check, 200, start_ms);
    ret_times->checks_ms = probe_since(start_ms);
    for (unsigned node = first_node; node < CLUSTER_NODES; node++)
        insist(cluster, node, &write, 201, start_ms);
    ret_times->writes_ms = probe_since(start_ms);
    snprintf(target, sizeof target, "/v1/api_keys/%s", probe_id);
    insist(cluster, first_node,
           &(struct http_call){.method = "DELETE", .target = target, .bearer = account->manager.secret}, 200, start_ms);
    ret_times->revokes_ms = probe_since(start_ms);
}

#include "clients.h"

#include "http_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS_THREADS_MAX = 32, ANSWER_TIMEOUT_MS = 10000 };

struct client {
    struct clients_plan *plan;
    unsigned seed;
    struct http_client connections[CLIENTS_NODES_MAX];
    struct http_answer answer;
};

static pthread_t threads[CLIENTS_THREADS_MAX];
static unsigned thread_count;

/* 0 where the connection broke: what became of the request is then not known. */
static int client_call(struct client *client, const struct http_call *call)
{
    unsigned node = (unsigned)rand_r(&client->seed) % client->plan->nodes;
    struct http_client *connection = &client->connections[node];

    if (connection->fd < 0)
        http_client_connect(connection, client->plan->ports[node]);
    http_client_send_call(connection, call);
    if (http_client_read(connection, false, ANSWER_TIMEOUT_MS, &client->answer) != HTTP_CLIENT_ANSWER) {
        http_client_close(connection);
        client->plan->counts.broken++;
        return 0;
    }
    if (client->answer.status == 503)
        client->plan->counts.unavailable++;
    return client->answer.status;
}

static void client_create(struct client *client)
{
    char id[HISTORY_ID_BYTES], secret[HISTORY_SECRET_BYTES];
    const struct http_call call = {.method = "POST",
                                   .target = "/v1/api_keys",
                                   .bearer = client->plan->manager,
                                   .json = "{\"name\":\"torture\",\"mode\":\"test\",\"scopes\":[\"patients:read\"]}"};

    if (client_call(client, &call) != 201)
        return;
    if (!http_answer_json(&client->answer, "id", id, sizeof id) ||
        !http_answer_json(&client->answer, "secret", secret, sizeof secret)) {
        fprintf(stderr, "VIOLATION: a creation without id or secret: %s\n", client->answer.body);
        client->plan->counts.violations++;
        return;
    }
    history_created(client->plan->history, id, secret);
    client->plan->counts.created++;
}

static void client_check(struct client *client)
{
    char code[64];
    struct key_knowledge key;
    if (!history_pick(client->plan->history, &client->seed, &key))
        return;

    int status = client_call(client, &(struct http_call){.target = "/v1/whoami", .bearer = key.secret});
    if (status == 0)
        return;
    if (status == 200)
        client->plan->counts.accepted++;
    if (status == 401)
        client->plan->counts.refused++;
    if (!http_answer_json(&client->answer, "error.code", code, sizeof code))
        code[0] = '\0';
    if (!history_judge(client->plan->history, &key, status, code))
        client->plan->counts.violations++;
}

static void client_revoke(struct client *client)
{
    char target[64];
    struct key_knowledge key;
    if (!history_pick_to_revoke(client->plan->history, &client->seed, &key))
        return;

    snprintf(target, sizeof target, "/v1/api_keys/%s", key.id);
    const struct http_call call = {.method = "DELETE", .target = target, .bearer = client->plan->manager};
    if (client_call(client, &call) == 200) {
        history_revoked(client->plan->history, key.index);
        client->plan->counts.revoked++;
    }
}

static void *client_run(void *arg)
{
    struct client *client = arg;

    while (!client->plan->stop) {
        int dice = rand_r(&client->seed) % 100;
        if (dice < 12)
            client_create(client);
        else if (dice < 20)
            client_revoke(client);
        else
            client_check(client);
    }
    for (unsigned i = 0; i < client->plan->nodes; i++)
        http_client_close(&client->connections[i]);
    free(client);
    return NULL;
}

void clients_start(struct clients_plan *plan, unsigned count)
{
    for (unsigned i = 0; i < count && i < CLIENTS_THREADS_MAX; i++) {
        struct client *client = calloc(1, sizeof *client);
        client->plan = plan;
        client->seed = plan->seed * 31 + i;
        for (unsigned n = 0; n < CLIENTS_NODES_MAX; n++)
            client->connections[n].fd = -1;
        if (pthread_create(&threads[thread_count++], NULL, client_run, client) != 0)
            abort();
    }
}

void clients_join(struct clients_plan *plan)
{
    plan->stop = true;
    for (unsigned i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    thread_count = 0;
}

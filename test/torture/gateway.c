#include "gateway.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 64, SESSIONS_MAX = 8, ATTEMPTS = 2, ANSWER_WITHIN_MS = 3000, PAUSE_MS = 2, CHECKS_A_PAGE = 8 };

struct live_key {
    char secret[FIXTURE_TOKEN_BYTES];
    char fields[160]; /* what is asked about */
};

/* A connection to one listener of a node, kept alive. */
struct line {
    struct http_client client; /* fd -1: none */
    unsigned port;
};

struct gateway {
    struct cluster *cluster;
    pthread_t thread;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards what follows up to the counts */
    struct live_key keys[KEYS_MAX];
    size_t key_count;
    char sessions[SESSIONS_MAX][FIXTURE_TOKEN_BYTES];
    size_t session_count;
    atomic_size_t checks, pages, retried, failed;
    /* The thread's own. */
    struct line lines[2][CLUSTER_NODES]; /* public, internal */
    unsigned next_node;
    struct http_answer answer;
};

/* One attempt. The status; 0: no node there, or no answer. */
static int attempt(struct gateway *gateway, bool is_internal, unsigned node, const struct http_call *call)
{
    const struct cluster *cluster = gateway->cluster;
    struct line *line = &gateway->lines[is_internal][node];
    unsigned up = atomic_load(&cluster->ports[node]);
    unsigned port = is_internal && up ? atomic_load(&cluster->internal_ports[node]) : up;

    if (port != line->port)
        http_client_close(&line->client);
    line->port = port;
    if (port == 0 || (line->client.fd < 0 && !http_client_try_connect(&line->client, (uint16_t)port)))
        return 0;
    http_client_send_call(&line->client, call);
    if (http_client_read(&line->client, false, ANSWER_WITHIN_MS, &gateway->answer) == HTTP_CLIENT_ANSWER)
        return gateway->answer.status;
    http_client_close(&line->client);
    return 0;
}

static void print_failure(const struct gateway *gateway, const struct http_call *call, int status, unsigned node)
{
    printf("FAILED after a retry: %s%s at node %u: %d %s\n", call->target,
           call->bearer ? " (a key's check)" : " (a session's page)", node, status, status ? gateway->answer.body : "");
}

static void ask(struct gateway *gateway, bool is_internal, const struct http_call *call)
{
    unsigned node = 0;
    int status = 0;

    for (unsigned i = 0; i < ATTEMPTS && status != 200; i++) {
        node = gateway->next_node++ % CLUSTER_NODES;
        gateway->retried += i > 0;
        status = attempt(gateway, is_internal, node, call);
        if (status != 0 && status != 503)
            break;
    }
    if (status != 200 && gateway->failed++ < GATEWAY_FAILURES_SHOWN)
        print_failure(gateway, call, status, node);
}

static void check_next(struct gateway *gateway)
{
    struct live_key key = {.secret = ""};

    pthread_mutex_lock(&gateway->lock);
    if (gateway->key_count > 0)
        key = gateway->keys[gateway->checks % gateway->key_count];
    pthread_mutex_unlock(&gateway->lock);
    if (!key.secret[0])
        return;
    ask(gateway, true,
        &(struct http_call){.target = "/check/forward-auth", .bearer = key.secret, .fields = key.fields});
    gateway->checks++;
}

static void look_at_next_page(struct gateway *gateway)
{
    char token[FIXTURE_TOKEN_BYTES] = "";

    pthread_mutex_lock(&gateway->lock);
    if (gateway->session_count > 0)
        snprintf(token, sizeof token, "%s", gateway->sessions[gateway->pages % gateway->session_count]);
    pthread_mutex_unlock(&gateway->lock);
    if (!token[0])
        return;
    ask(gateway, false, &(struct http_call){.target = "/v1/console/session", .cookie = token});
    gateway->pages++;
}

static void *run(void *arg)
{
    struct gateway *gateway = arg;

    while (!gateway->stop) {
        for (int i = 0; i < CHECKS_A_PAGE; i++) {
            check_next(gateway);
            poll(NULL, 0, PAUSE_MS);
        }
        look_at_next_page(gateway);
    }
    for (int internal = 0; internal < 2; internal++)
        for (unsigned node = 0; node < CLUSTER_NODES; node++)
            http_client_close(&gateway->lines[internal][node].client);
    return NULL;
}

struct gateway *gateway_start(struct cluster *cluster)
{
    struct gateway *gateway = calloc(1, sizeof *gateway);

    if (!gateway)
        abort();
    gateway->cluster = cluster;
    pthread_mutex_init(&gateway->lock, NULL);
    for (int internal = 0; internal < 2; internal++)
        for (unsigned node = 0; node < CLUSTER_NODES; node++)
            gateway->lines[internal][node].client.fd = -1;
    if (pthread_create(&gateway->thread, NULL, run, gateway) != 0)
        abort();
    return gateway;
}

void gateway_add_key(struct gateway *gateway, const char *secret, const char *method, const char *target)
{
    pthread_mutex_lock(&gateway->lock);
    if (gateway->key_count == KEYS_MAX)
        test_give_up("too many live keys");
    struct live_key *key = &gateway->keys[gateway->key_count++];
    snprintf(key->secret, sizeof key->secret, "%s", secret);
    snprintf(key->fields, sizeof key->fields, "X-Forwarded-Method: %s\r\nX-Forwarded-Uri: %s\r\n", method, target);
    pthread_mutex_unlock(&gateway->lock);
}

void gateway_add_session(struct gateway *gateway, const char *token)
{
    pthread_mutex_lock(&gateway->lock);
    if (gateway->session_count == SESSIONS_MAX)
        test_give_up("too many sessions");
    snprintf(gateway->sessions[gateway->session_count++], FIXTURE_TOKEN_BYTES, "%s", token);
    pthread_mutex_unlock(&gateway->lock);
}

struct gateway_counts gateway_counts(struct gateway *gateway)
{
    return (struct gateway_counts){gateway->checks, gateway->pages, gateway->retried, gateway->failed};
}

void gateway_await_round(struct gateway *gateway)
{
    struct gateway_counts before = gateway_counts(gateway);
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (gateway->checks <= before.checks + KEYS_MAX || gateway->pages <= before.pages + SESSIONS_MAX) {
        if (deadline_left_ms(deadline) == 0)
            test_give_up("the gateway stands still");
        poll(NULL, 0, PAUSE_MS);
    }
}

void gateway_stop(struct gateway *gateway)
{
    gateway->stop = true;
    pthread_join(gateway->thread, NULL);
    pthread_mutex_destroy(&gateway->lock);
    free(gateway);
}

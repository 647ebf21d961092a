#include "setback.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEP_MS = 5,
    GIVE_UP_MS = 60000,
    OPERATOR_AFTER_MS = 4000, /* longer than nodes wait for each other */
    OPERATOR_AGAIN_MS = 2000,
    OPERATOR_STEP_MS = 50,
    GOOD_IN_A_ROW = 10,
    TIMES_MAX = 4096,
};

/* Of each node that lived: until it served for good. */
struct times {
    size_t count;
    int64_t ms[TIMES_MAX];
};

struct setbacks {
    struct cluster *cluster;
    struct history *history;
    int64_t since_ms;
    unsigned living;
    pthread_t operator;
    atomic_bool operator_ends;
    size_t count, accepted, accepted_before;
    struct times alone, helped; /* without the operator, and with him */
    size_t log_seen[CLUSTER_NODES];
    unsigned log_of[CLUSTER_NODES]; /* the node's life that it is of */
    size_t told, timed_out, complaints, complaints_heard;
};

/* A node, while it comes back. */
struct returning {
    unsigned good; /* rounds in a row in which it accepted the managers of all accounts */
    int64_t served_ms;
};

struct setbacks *setbacks_create(struct cluster *cluster, struct history *history)
{
    struct setbacks *setbacks = calloc(1, sizeof *setbacks);

    if (!setbacks)
        abort();
    setbacks->cluster = cluster;
    setbacks->history = history;
    return setbacks;
}

void setbacks_destroy(struct setbacks *setbacks)
{
    free(setbacks);
}

/* Logs */

static void count_line(struct setbacks *setbacks, const char *line)
{
    const char *told = strstr(line, "revocations=");

    if (strstr(line, "lost revocations were repeated") && told)
        setbacks->told += strtoul(told + strlen("revocations="), NULL, 10);
    setbacks->complaints += strstr(line, "Redis lost changes that nodes acknowledged") != NULL;
    setbacks->timed_out += strstr(line, "nodes have not come to this Redis in time") != NULL;
}

/* What the node has written since it was last asked. */
static void read_log(struct setbacks *setbacks, unsigned node)
{
    char *log = node_log(&setbacks->cluster->fixture.nodes[node]), *rest, *line;
    unsigned life = cluster_incarnation(setbacks->cluster, node);

    if (setbacks->log_of[node] != life || setbacks->log_seen[node] > strlen(log))
        setbacks->log_seen[node] = 0;
    setbacks->log_of[node] = life;
    rest = log + setbacks->log_seen[node];
    setbacks->log_seen[node] = strlen(log);
    while ((line = strsep(&rest, "\n")))
        count_line(setbacks, line);
    free(log);
}

/* The operator */

/* In a cluster /readyz does not tell of one partition. */
static bool is_needed(struct setbacks *setbacks)
{
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        if (setbacks->living & 1U << node)
            read_log(setbacks, node);
    return setbacks->complaints > setbacks->complaints_heard;
}

static void accept_loss(struct setbacks *setbacks)
{
    char *out, *err;
    size_t fault = history_fault_begin(setbacks->history, "operator: store accept-loss");

    /* Before: what is accepted because of it is seen later. */
    history_loss_accepted(setbacks->history, history_now_ns());
    setbacks->accepted++;
    setbacks->complaints_heard = setbacks->complaints;
    if (fixture_run(&setbacks->cluster->fixture, (const char *const[]){"store", "accept-loss", NULL}, NULL, &out,
                    &err) != 0)
        fprintf(stderr, "store accept-loss: %s%s\n", out, err);
    free(out);
    free(err);
    history_fault_end(setbacks->history, fault);
}

static void *operate(void *arg)
{
    struct setbacks *setbacks = arg;
    int64_t next_ms = setbacks->since_ms + OPERATOR_AFTER_MS;

    while (!setbacks->operator_ends) {
        if (deadline_now_ms() >= next_ms && is_needed(setbacks)) {
            accept_loss(setbacks);
            next_ms = deadline_now_ms() + OPERATOR_AGAIN_MS;
        }
        poll(NULL, 0, OPERATOR_STEP_MS);
    }
    return NULL;
}

void setbacks_begin(struct setbacks *setbacks, unsigned living)
{
    setbacks->count++;
    setbacks->living = living;
    setbacks->accepted_before = setbacks->accepted;
    setbacks->since_ms = deadline_now_ms();
    setbacks->operator_ends = false;
    if (pthread_create(&setbacks->operator, NULL, operate, setbacks) != 0)
        abort();
}

static void operator_end(struct setbacks *setbacks)
{
    setbacks->operator_ends = true;
    pthread_join(setbacks->operator, NULL);
}

/* Waiting */

static bool serves(struct setbacks *setbacks, unsigned node)
{
    static struct http_answer answer;
    struct cluster *cluster = setbacks->cluster;

    for (unsigned i = 0; i < cluster->account_count; i++) {
        const struct http_call call = {.target = "/v1/whoami", .bearer = cluster->accounts[i].manager.secret};

        if (cluster_call(cluster, node, &call, &answer) != 200)
            return false;
    }
    return true;
}

/* Whether all serve for good. */
static bool look(struct setbacks *setbacks, struct returning *returning)
{
    bool are_back = true;

    for (unsigned node = 0; node < CLUSTER_NODES; node++) {
        struct returning *r = &returning[node];

        if (!serves(setbacks, node))
            r->good = 0;
        else if (r->good++ == 0)
            r->served_ms = deadline_now_ms();
        are_back = are_back && r->good >= GOOD_IN_A_ROW;
    }
    return are_back;
}

void setbacks_await(struct setbacks *setbacks)
{
    struct returning returning[CLUSTER_NODES] = {0};

    while (!look(setbacks, returning)) {
        if (deadline_now_ms() - setbacks->since_ms > GIVE_UP_MS) {
            operator_end(setbacks);
            history_violation(setbacks->history, "a node does not serve by a store that went back", "");
            return;
        }
        poll(NULL, 0, STEP_MS);
    }
    operator_end(setbacks);
    struct times *times = setbacks->accepted > setbacks->accepted_before ? &setbacks->helped : &setbacks->alone;
    for (unsigned node = 0; node < CLUSTER_NODES; node++) {
        if ((setbacks->living & 1U << node) && times->count < TIMES_MAX)
            times->ms[times->count++] = returning[node].served_ms - setbacks->since_ms;
        read_log(setbacks, node);
    }
}

/* Printing */

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static void print_times(struct times *times, const char *what)
{
    if (times->count == 0)
        return;
    qsort(times->ms, times->count, sizeof *times->ms, compare_times);
    printf("503 by nodes that lived, %s: %ld ms (median), %ld ms (worst), %zu times\n", what,
           (long)times->ms[times->count / 2], (long)times->ms[times->count - 1], times->count);
}

void setbacks_print(struct setbacks *setbacks)
{
    if (setbacks->count == 0)
        return;
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        read_log(setbacks, node);
    printf("the store went back %zu times: %zu endings repeated, %zu gatherings ran out of time, %zu times an operator "
           "accepted the loss\n",
           setbacks->count, setbacks->told, setbacks->timed_out, setbacks->accepted);
    print_times(&setbacks->alone, "where nodes repeated all");
    print_times(&setbacks->helped, "until an operator had accepted a loss");
}

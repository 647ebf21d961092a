#include "dev_cluster.h"

#include "base/check.h"
#include "base/secure.h"
#include "redis/cluster.h"
#include "redis/link.h"

#include <stdio.h>
#include <string.h>

enum {
    FORM_WITHIN_MS = 60000, /* servers that start again keep still for two seconds, and then find each other */
    PAUSE_MS = 50,
    TIMEOUT_MS = 10000,
    BACKOFF_MAX_MS = 200,
    CALLS_MAX = 4,
    ANSWER_BYTES = 4096,
    NUMBER_BYTES = 8,
};

struct former {
    struct dev_redis *redis;
    struct redis_link *links[DEV_CLUSTER_SERVERS];
    unsigned open; /* links */
    bool is_answered, is_error;
    char answer[ANSWER_BYTES];  /* empty: none came */
    char refusal[ANSWER_BYTES]; /* the last error that a server answered */
};

/* What a server says of itself and its cluster. */
struct member_state {
    bool is_ok;
    int64_t known, epoch, assigned, served;
};

static void on_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct former *former = arg;
    struct text answer = outcome == REDIS_REPLIED ? reply->text : (struct text){0};

    former->is_answered = true;
    former->is_error = outcome == REDIS_REPLIED && reply->type == REPLY_ERROR;
    snprintf(former->answer, sizeof former->answer, "%.*s", TEXT_ARG(answer));
    if (former->is_error)
        memcpy(former->refusal, former->answer, sizeof former->refusal);
}

/* Waits for the answer, which is then in former->answer. False: none came, or an error. */
static bool ask(struct former *former, unsigned number, size_t argc, const struct text *argv)
{
    former->is_answered = false;
    redis_link_call(former->links[number], argc, argv, on_answered, former);
    while (!former->is_answered)
        uv_run(former->redis->loop, UV_RUN_ONCE);
    return former->answer[0] && !former->is_error;
}

static struct text print_number(char storage[NUMBER_BYTES], unsigned number)
{
    snprintf(storage, NUMBER_BYTES, "%u", number);
    return text_of(storage);
}

static bool read_count(struct text info, struct text name, int64_t *ret_count)
{
    uint64_t count;

    if (!text_to_u64(reply_info_value(info, name), INT64_MAX, &count))
        return false;
    *ret_count = (int64_t)count;
    return true;
}

static bool read_state(struct former *former, unsigned number, struct member_state *ret_state)
{
    const struct text info[] = {TEXT("CLUSTER"), TEXT("INFO")};

    if (!ask(former, number, 2, info))
        return false;
    struct text answer = text_of(former->answer);
    ret_state->is_ok = text_equal(reply_info_value(answer, TEXT("cluster_state")), TEXT("ok"));
    return read_count(answer, TEXT("cluster_known_nodes"), &ret_state->known) &&
           read_count(answer, TEXT("cluster_my_epoch"), &ret_state->epoch) &&
           read_count(answer, TEXT("cluster_slots_assigned"), &ret_state->assigned) &&
           read_count(answer, TEXT("cluster_slots_ok"), &ret_state->served);
}

/* Each gets an epoch of its own, so that they need not sort that out. */
static bool give_epoch(struct former *former, unsigned number)
{
    char epoch[NUMBER_BYTES];
    const struct text command[] = {TEXT("CLUSTER"), TEXT("SET-CONFIG-EPOCH"), print_number(epoch, number + 1)};

    return ask(former, number, 3, command);
}

static bool give_slots(struct former *former, unsigned number)
{
    char first[NUMBER_BYTES], last[NUMBER_BYTES];
    const struct text command[] = {TEXT("CLUSTER"), TEXT("ADDSLOTSRANGE"),
                                   print_number(first, number * REDIS_SLOTS / DEV_CLUSTER_SERVERS),
                                   print_number(last, (number + 1) * REDIS_SLOTS / DEV_CLUSTER_SERVERS - 1)};

    return ask(former, number, 4, command);
}

static bool introduce(struct former *former, unsigned number)
{
    const struct dev_server *server = &former->redis->home->servers[number];
    char port[NUMBER_BYTES], bus_port[NUMBER_BYTES];
    const struct text command[] = {TEXT("CLUSTER"), TEXT("MEET"), TEXT("127.0.0.1"), print_number(port, server->port),
                                   print_number(bus_port, server->bus_port)};

    return ask(former, 0, 5, command);
}

/* All have their slots before any two meet. So a server that knows of no slots has none. */
static bool give_all_slots(struct former *former, const struct member_state states[DEV_CLUSTER_SERVERS])
{
    for (unsigned i = 0; i < DEV_CLUSTER_SERVERS; i++) {
        if (states[i].known == 1 && states[i].epoch == 0 && !give_epoch(former, i))
            return false;
        if (states[i].assigned == 0 && !give_slots(former, i))
            return false;
    }
    return true;
}

static bool is_whole(const struct member_state states[DEV_CLUSTER_SERVERS])
{
    for (unsigned i = 0; i < DEV_CLUSTER_SERVERS; i++)
        if (!states[i].is_ok || states[i].served != REDIS_SLOTS)
            return false;
    return true;
}

/* Takes the steps that are due. Each may be taken again. True once nothing is left to do. */
static bool take_steps(struct former *former)
{
    struct member_state states[DEV_CLUSTER_SERVERS];

    for (unsigned i = 0; i < DEV_CLUSTER_SERVERS; i++)
        if (!read_state(former, i, &states[i]))
            return false;
    if (!give_all_slots(former, states))
        return false;
    for (unsigned i = 1; i < DEV_CLUSTER_SERVERS && states[0].known < DEV_CLUSTER_SERVERS; i++)
        if (!introduce(former, i))
            return false;
    return is_whole(states);
}

static bool has_ended(const void *arg)
{
    return !dev_redis_is_running(arg);
}

static bool is_formed_in_time(struct former *former)
{
    uint64_t until_ms = uv_now(former->redis->loop) + FORM_WITHIN_MS;

    while (!take_steps(former))
        if (dev_redis_wait(former->redis, has_ended, former->redis, PAUSE_MS) ||
            uv_now(former->redis->loop) >= until_ms)
            return false;
    return true;
}

static void former_open(struct former *former)
{
    const struct redis_link_settings settings = {.name = "forming",
                                                 .durations = HISTOGRAM_REDIS_CLUSTER,
                                                 .timeout_ms = TIMEOUT_MS,
                                                 .backoff_max_ms = BACKOFF_MAX_MS,
                                                 .calls_max = CALLS_MAX};
    const struct dev_home *home = former->redis->home;
    struct redis_target target = {.is_unix = true};

    snprintf(target.login.password, sizeof target.login.password, "%s", home->redis_password);
    for (unsigned i = 0; i < DEV_CLUSTER_SERVERS; i++) {
        snprintf(target.host, sizeof target.host, "%s", home->servers[i].socket);
        former->links[i] = redis_link_create(former->redis->loop, &target, &settings, NULL, NULL);
        former->open++;
    }
    secure_wipe(&target, sizeof target);
}

static void on_closed(void *arg)
{
    struct former *former = arg;

    former->open--;
}

static void former_close(struct former *former)
{
    for (unsigned i = 0; i < DEV_CLUSTER_SERVERS; i++)
        redis_link_close(former->links[i], on_closed, former);
    while (former->open > 0)
        uv_run(former->redis->loop, UV_RUN_ONCE);
}

/* The first reason that a link or a server has given. */
static void print_why(const struct former *former, struct buf *out)
{
    for (unsigned i = 0; i < DEV_CLUSTER_SERVERS; i++)
        if (!redis_link_is_ready(former->links[i])) {
            buf_append_str(out, redis_link_trouble(former->links[i]));
            return;
        }
    buf_printf(out, "%s", former->refusal[0] ? former->refusal : "they do not find each other");
}

int dev_cluster_form(struct dev_redis *redis)
{
    struct former former = {.redis = redis};
    struct buf why = BUF_FIXED(ANSWER_BYTES);

    former_open(&former);
    bool is_formed = is_formed_in_time(&former);
    if (!is_formed)
        print_why(&former, &why);
    former_close(&former);
    if (is_formed && dev_redis_is_running(redis))
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "the servers in %s do not form a cluster: %.*s; %s may say more",
                        redis->home->path, TEXT_ARG(buf_text(&why)), redis->home->servers[0].log);
}

/* scripts/neighbours: a noisy neighbour on each route. For each row of the route table a node of its own is attacked by
 * tenant A over 200 connections, with valid, unknown, malformed and large requests. Tenant B revokes one key after the
 * other, and the node is stopped during the attack. Then A's responder ends 10,000 keys of A while a leaked key of A
 * attacks all routes for keys at once. Prints a row for each; ends with 1 if
 * - a revocation of B is not answered 200,
 * - the node takes more memory than is documented,
 * - its drain takes longer than --drain-ms and what is written then, or does not end well,
 * - nothing of A reached the row, or nobody has written down what to send to it,
 * - the responder's keys are not all ended within 5 s.
 * What B's revocations take depends on the machine, so it is only told, beside what they take in peace. */
#include "../integration/route_attack.h"
#include "base/clock.h"
#include "pour.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ATTACK_MS = 2000,
    DRAIN_MAX_MS = 2000 + 10000,   /* DRAIN_MS, and what is written then has the fixture's --redis-timeout-ms */
    HASH_MAX_KIB = 2 * 128 * 1024, /* of --password-parallel */
    SESSIONS = 10,
    SAMPLES_MAX = 100000,
    RESPONDER_KEYS = 10000,
    RESPONDER_MAX_MS = 5000,
    TABLE_WIDTH = 62
};

/* An attack that goes on uses all of it. */
#define DRAIN_MS "2000"

struct night {
    struct fixture fixture;
    struct attack_scene a;
    struct fixture_session sessions[SESSIONS];
    struct attack_call attacks[POUR_CONNECTIONS];
    struct http_call calls[POUR_CONNECTIONS];
    struct pour pour;
    struct http_client b;
    struct http_answer answer;
    size_t count;
    double took_ms[SAMPLES_MAX]; /* B's revocations */
    size_t refused;
    char name[96];
    bool is_in_peace; /* nobody attacks: what the machine alone makes of it */
    bool is_broken;
};

__attribute__((format(printf, 2, 3))) static void complain(struct night *night, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "%s: ", night->name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    night->is_broken = true;
}

/* The scene */

static void ask(struct night *night, const struct http_call *call, const char *path, char ret_id[FIXTURE_TOKEN_BYTES])
{
    fixture_call(&night->fixture, 0, call, &night->answer);
    if (!http_answer_json(&night->answer, path, ret_id, FIXTURE_TOKEN_BYTES))
        test_give_up("%s: no %s in %s", call->target, path, night->answer.body);
}

/* What the row's path may name. */
static void add_objects(struct night *night)
{
    const struct fixture_session *session = &night->a.session;
    struct fixture_key device;

    fixture_add_key(&night->fixture, night->a.account, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &device);
    snprintf(night->a.ids[ATTACK_DEVICE_KEY], FIXTURE_TOKEN_BYTES, "%s", device.id);
    ask(night,
        &(struct http_call){
            .method = "POST", .target = "/v1/auth/device_authorization", .form = "client_id=desktop-agent"},
        "user_code", night->a.ids[ATTACK_ENROLMENT]);
    ask(night,
        &(struct http_call){.method = "POST",
                            .target = "/v1/console/invitations",
                            .cookie = session->token,
                            .csrf = session->csrf,
                            .json = "{\"email\":\"invited@clinic.example\",\"role\":\"auditor\"}"},
        "id", night->a.ids[ATTACK_INVITATION]);
    ask(night, &(struct http_call){.target = "/v1/console/sessions", .cookie = session->token}, "data.1.id",
        night->a.ids[ATTACK_SESSION]);
}

static void begin(struct night *night, const char *name, bool is_in_peace)
{
    snprintf(night->name, sizeof night->name, "%s", name);
    night->is_in_peace = is_in_peace;
    night->count = night->refused = 0;
    fixture_start(&night->fixture, 1, (const char *const[]){"--drain-ms", DRAIN_MS, NULL});
    fixture_open_store(&night->fixture);
    attack_add_tenant(&night->fixture, MODE_LIVE, &night->a);
    night->sessions[0] = night->a.session;
    for (size_t i = 1; i < SESSIONS; i++)
        fixture_add_session(&night->fixture, &night->a.owner, true, &night->sessions[i]);
    fixture_await_key(&night->fixture, 0, night->a.key.secret, 200);
    fixture_await_key(&night->fixture, 0, night->fixture.manager.secret, 200);
    add_objects(night);
}

static void end(struct night *night)
{
    http_client_close(&night->b);
    for (size_t i = 0; i < POUR_CONNECTIONS; i++)
        attack_free(&night->attacks[i]);
    if (!night->is_in_peace)
        pour_free(&night->pour);
    fixture_close_store(&night->fixture);
    fixture_stop(&night->fixture);
}

/* The attack */

/* A connection's request; false: nobody has written down what the row takes. */
static bool aim(struct night *night, size_t connection, const struct route *row, enum attack_shape shape)
{
    struct attack_call *attack = &night->attacks[connection];
    bool is_known = attack_make(&night->a, row, shape, attack);

    if (attack->call.cookie) {
        attack->call.cookie = night->sessions[connection % SESSIONS].token;
        attack->call.csrf = night->sessions[connection % SESSIONS].csrf;
    }
    night->calls[connection] = attack->call;
    return is_known;
}

/* Returns once it is under way, and B, who comes before it, is connected. In peace nobody else comes. */
static void attack(struct night *night)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    http_client_connect(&night->b, night->fixture.nodes[0].port);
    if (night->is_in_peace)
        return;
    pour_start(&night->pour, night->fixture.nodes[0].port, night->calls);
    while (pour_answers(&night->pour) == 0 && deadline_left_ms(deadline) > 0)
        sched_yield();
}

/* Whether the row itself has answered, rather than what stands before it. */
static bool is_hit(const struct night *night, const struct route *row)
{
    unsigned hits = pour_answers(&night->pour);

    hits -= night->pour.counts->answers[405] + night->pour.counts->answers[503];
    return hits > (row->who == WHO_ANYONE ? 0 : night->pour.counts->answers[401] + night->pour.counts->answers[403]);
}

/* The neighbour */

static void revoke_one(struct night *night)
{
    struct fixture_key key;
    char target[80];
    const struct http_call call = {.method = "DELETE", .target = target, .bearer = night->fixture.manager.secret};

    fixture_add_key(&night->fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    snprintf(target, sizeof target, "/v1/api_keys/%s", key.id);
    const uint64_t began_ns = clock_boot_ns();
    http_client_send_call(&night->b, &call);
    if (http_client_read(&night->b, false, PATIENCE_MS, &night->answer) != HTTP_CLIENT_ANSWER) {
        night->answer.status = 0;
        http_client_close(&night->b);
        http_client_connect(&night->b, night->fixture.nodes[0].port);
    }
    night->took_ms[night->count++] = (double)(clock_boot_ns() - began_ns) / (double)CLOCK_NS_PER_MS;
    if (night->answer.status == 200)
        return;
    if (night->refused++ == 0)
        complain(night, "a revocation of B: %d %s", night->answer.status, night->answer.body);
}

static int by_size(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* Of the sorted ones: a thousandth of what share of them took no longer. */
static double quantile(const struct night *night, size_t per_mille)
{
    return night->took_ms[(night->count - 1) * per_mille / 1000];
}

/* The end */

/* Returns how long it took. */
static int64_t drain(struct night *night)
{
    struct node *node = &night->fixture.nodes[0];
    const int64_t began_ms = deadline_now_ms();
    int64_t took_ms;

    if (!night->is_in_peace && !pour_lives(&night->pour))
        complain(night, "the attack has ended before the node");
    process_signal(&node->process, SIGTERM);
    if (!process_wait(&node->process, DRAIN_MAX_MS))
        complain(night, "the drain takes longer than %d ms", DRAIN_MAX_MS);
    took_ms = deadline_now_ms() - began_ms;
    node_expect_clean_end(node);
    if (!night->is_in_peace)
        pour_end(&night->pour);
    return took_ms;
}

/* Ends the node, and prints what there is to say. */
static void tell(struct night *night, unsigned long max_kib)
{
    const unsigned long peak_kib = attack_peak_kib(&night->fixture.nodes[0]);
    const int64_t drain_ms = drain(night);
    char answers[256] = "";

    if (peak_kib > max_kib)
        complain(night, "the node took %lu KiB, more than %lu", peak_kib, max_kib);
    if (!night->is_in_peace)
        pour_print(&night->pour, answers, sizeof answers);
    qsort(night->took_ms, night->count, sizeof *night->took_ms, by_size);
    printf("| %-*s | %6zu | %7.1f | %7.1f | %5lu | %6lld | %s |\n", TABLE_WIDTH, night->name, night->count,
           quantile(night, 500), quantile(night, 990), peak_kib / 1024, (long long)drain_ms, answers);
    fflush(stdout);
}

static void revoke_for(struct night *night, int ms)
{
    const int64_t until_ms = deadline_now_ms() + ms;

    do
        revoke_one(night);
    while (deadline_now_ms() < until_ms && night->count < SAMPLES_MAX);
}

static void judge_row(struct night *night, const struct route *row)
{
    char name[sizeof night->name];
    bool is_known = true;

    snprintf(name, sizeof name, "%s %s", attack_method(row), row->path);
    begin(night, name, false);
    if (strstr(row->path, "/revocation") && !strstr(row->path, "/scheduled"))
        fixture_revoke_key(&night->fixture, &night->a.victim);
    for (size_t i = 0; i < POUR_CONNECTIONS; i++)
        is_known = aim(night, i, row, i % ATTACK_SHAPES) && is_known;
    if (!is_known)
        complain(night, "test/integration/route_attack.c does not say what to send");
    if (row->class == GATE_WORK)
        attack_fill_trail(&night->fixture, night->a.account);
    attack(night);
    revoke_for(night, ATTACK_MS);
    tell(night, ATTACK_NODE_MAX_KIB + (attack_hashes(row) ? HASH_MAX_KIB : 0));
    if (!is_hit(night, row))
        complain(night, "nobody attacked it");
    end(night);
}

static void judge_peace(struct night *night)
{
    begin(night, "nothing", true);
    attack(night);
    revoke_for(night, ATTACK_MS);
    tell(night, ATTACK_NODE_MAX_KIB);
    end(night);
}

/* The attacked account's own responder */

struct responder {
    struct http_client client;
    struct http_call call;
    struct http_answer answer;
    double took_ms;
    atomic_bool is_done;
};

static void *respond(void *arg)
{
    struct responder *responder = arg;
    const uint64_t began_ns = clock_boot_ns();

    http_client_call(&responder->client, &responder->call, &responder->answer);
    responder->took_ms = (double)(clock_boot_ns() - began_ns) / (double)CLOCK_NS_PER_MS;
    atomic_store(&responder->is_done, true);
    return NULL;
}

/* All routes for keys at once, in every shape. */
static void aim_at_all(struct night *night)
{
    size_t connection = 0;

    for (size_t turn = 0; connection < POUR_CONNECTIONS; turn++)
        for (size_t i = 0; i < ROUTE_COUNT && connection < POUR_CONNECTIONS; i++)
            if (ROUTES[i].who == WHO_API_KEY)
                (void)aim(night, connection++, &ROUTES[i], turn % ATTACK_SHAPES);
}

/* {"ids":[…]} of new keys of A; the caller frees it. */
static char *add_keys(struct night *night)
{
    struct fixture_key key;
    char *json = NULL;
    size_t len;
    FILE *out = open_memstream(&json, &len);

    fputs("{\"ids\":[", out);
    for (int i = 0; i < RESPONDER_KEYS; i++) {
        fixture_add_key(&night->fixture, night->a.account, KEY_API, MODE_LIVE, SCOPE_USAGE_READ, &key);
        fprintf(out, "%s\"%s\"", i ? "," : "", key.id);
    }
    fputs("]}", out);
    fclose(out);
    return json;
}

static void begin_responder(struct night *night, struct responder *responder, const char *json)
{
    *responder = (struct responder){.call = {.method = "POST",
                                             .target = "/v1/console/api_keys/revoke",
                                             .cookie = night->a.session.token,
                                             .csrf = night->a.session.csrf,
                                             .json = json}};
    http_client_connect(&responder->client, night->fixture.nodes[0].port);
}

static void judge_responder(struct night *night, bool is_in_peace)
{
    static struct responder responder;
    pthread_t thread;
    char *json;
    int ended;

    begin(night, is_in_peace ? "nothing, and A's responder ends 10,000 keys" : "all routes for keys, likewise",
          is_in_peace);
    json = add_keys(night);
    attack_fill_trail(&night->fixture, night->a.account);
    aim_at_all(night);
    begin_responder(night, &responder, json);
    attack(night);
    if (pthread_create(&thread, NULL, respond, &responder) != 0)
        test_give_up("no thread for the responder");
    do
        revoke_one(night);
    while (!atomic_load(&responder.is_done));
    pthread_join(thread, NULL);
    http_client_close(&responder.client);
    tell(night, ATTACK_NODE_MAX_KIB);
    ended = http_answer_json_count(&responder.answer, "revoked");
    printf("A's responder: %d, %d keys ended in %.0f ms\n", responder.answer.status, ended, responder.took_ms);
    if (ended != RESPONDER_KEYS || (!is_in_peace && responder.took_ms > RESPONDER_MAX_MS))
        complain(night, "%d of %d keys ended in %.0f ms, of at most %d", ended, RESPONDER_KEYS, responder.took_ms,
                 RESPONDER_MAX_MS);
    end(night);
    free(json);
}

/* Arguments: only rows whose path contains one of them. */
static bool is_wanted(const char *path, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strstr(path, argv[i]))
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    static struct night night;

    printf("| %-*s | %6s | %7s | %7s | %5s | %6s | %s |\n|---|---|---|---|---|---|---|\n", TABLE_WIDTH, "A attacks",
           "B: n", "p50 ms", "p99 ms", "MiB", "end ms", "A's answers");
    judge_peace(&night);
    for (size_t i = 0; i < ROUTE_COUNT; i++)
        if (is_wanted(ROUTES[i].path, argc, argv))
            judge_row(&night, &ROUTES[i]);
    for (int turn = 0; turn < 2 && is_wanted("responder", argc, argv); turn++)
        judge_responder(&night, turn == 0);
    return night.is_broken ? EXIT_FAILURE : EXIT_SUCCESS;
}

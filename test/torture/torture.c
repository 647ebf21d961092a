/* scripts/torture: Redis is killed (SIGKILL) and started again, over and over, while clients create, check and revoke
 * keys and people sign in at two nodes. Afterwards everything that was ever answered is held against what there is.
 *
 *   torture [seconds] [seed] */
#include "../integration/fixture.h"
#include "clients.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 2, THREADS = 8, SESSIONS_MAX = 64, BACK_WITHIN_MS = 2000, SETTLE_MS = 6000 };

struct torture {
    struct fixture fixture;
    struct history *history;
    struct clients_plan plan;
    struct http_answer answer;
    unsigned seed;
    int64_t worst_return_ms;
    unsigned kills, signed_in;
    struct fixture_user users[SESSIONS_MAX];
    struct fixture_session sessions[SESSIONS_MAX];
    bool has_session[SESSIONS_MAX];
    long violations;
};

static void violation(struct torture *torture, const char *what, const char *which)
{
    fprintf(stderr, "VIOLATION: %s: %s\n", what, which);
    torture->violations++;
}

static void pause_ms(unsigned ms)
{
    poll(NULL, 0, (int)ms);
}

static unsigned below(struct torture *torture, unsigned bound)
{
    return (unsigned)rand_r(&torture->seed) % bound;
}

/* Redis answers again: how long until each node does? */
static void time_return(struct torture *torture)
{
    int64_t start = deadline_now_ms();

    for (size_t node = 0; node < NODES; node++)
        while (fixture_try_key(&torture->fixture, node, torture->fixture.manager.secret) != 200) {
            if (deadline_now_ms() - start > 5 * BACK_WITHIN_MS) {
                violation(torture, "a node does not serve again", torture->fixture.nodes[node].ready_path);
                return;
            }
            pause_ms(5);
        }
    int64_t took = deadline_now_ms() - start;
    if (took > torture->worst_return_ms)
        torture->worst_return_ms = took;
}

static void kill_redis(struct torture *torture)
{
    redis_server_kill(&torture->fixture.redis);
    pause_ms(200 + below(torture, 1300));
    redis_server_restart(&torture->fixture.redis);
    torture->kills++;
    time_return(torture);
}

/* One user after the other, for a code counts once. Whether it works now depends on Redis; what was answered must hold.
 */
static void sign_one_in(struct torture *torture)
{
    char code[8];
    unsigned i = torture->signed_in;

    if (i == SESSIONS_MAX || torture->users[i].email[0] == '\0')
        return;
    torture->signed_in++;
    fixture_totp(&torture->users[i], 0, code);
    torture->has_session[i] = fixture_login(&torture->fixture, below(torture, NODES), &torture->users[i],
                                            FIXTURE_PASSWORD, code, &torture->sessions[i], &torture->answer) == 200;
}

static void check_keys(struct torture *torture)
{
    for (size_t i = 0; i < history_count(torture->history); i++) {
        struct key_knowledge key;
        history_at(torture->history, i, &key);
        int status = fixture_call(&torture->fixture, i % NODES,
                                  &(struct http_call){.target = "/v1/whoami", .bearer = key.secret}, &torture->answer);
        const char *code = http_answer_code(&torture->answer);
        if (!history_judge(torture->history, &key, status, code))
            torture->violations++;
        else if (status == 503)
            violation(torture, "still 503 with Redis back", key.id);
    }
}

static void check_sessions(struct torture *torture, unsigned *ret_alive)
{
    *ret_alive = 0;
    for (unsigned i = 0; i < torture->signed_in; i++) {
        if (!torture->has_session[i])
            continue;
        const struct http_call call = {.target = "/v1/console/session", .cookie = torture->sessions[i].token};
        if (fixture_call(&torture->fixture, i % NODES, &call, &torture->answer) != 200)
            violation(torture, "an answered session is gone", torture->users[i].email);
        else
            ++*ret_alive;
    }
}

/* Every key that is listed as active was answered to somebody: one whose answer was lost has been revoked. */
static void check_orphans(struct torture *torture, size_t *ret_listed)
{
    char target[160], id[HISTORY_ID_BYTES] = "", more[8] = "true";

    *ret_listed = 0;
    while (strcmp(more, "true") == 0) {
        snprintf(target, sizeof target, "/v1/api_keys?limit=100&status=active&mode=test%s%s",
                 id[0] ? "&starting_after=" : "", id);
        const struct http_call call = {.target = target, .bearer = torture->fixture.manager.secret};
        if (fixture_call(&torture->fixture, 0, &call, &torture->answer) != 200) {
            violation(torture, "the keys can't be listed", torture->answer.body);
            return;
        }
        for (const char *at = torture->answer.body; (at = strstr(at, "{\"id\":\"")) != NULL; at++) {
            snprintf(id, sizeof id, "%.30s", at + strlen("{\"id\":\""));
            ++*ret_listed;
            if (history_find(torture->history, id) == HISTORY_KEYS_MAX)
                violation(torture, "active, and nobody has its secret", id);
        }
        if (!http_answer_json(&torture->answer, "has_more", more, sizeof more))
            break;
    }
}

static void note_events(struct torture *torture, const char *body, const char *type, unsigned char *seen, unsigned bit)
{
    for (const char *at = body; (at = strstr(at, type)) != NULL; at++) {
        const char *target = strstr(at, "\"target\":\"");
        char id[HISTORY_ID_BYTES];
        size_t index;

        if (!target)
            return;
        snprintf(id, sizeof id, "%.30s", target + strlen("\"target\":\""));
        index = history_find(torture->history, id);
        if (index < HISTORY_KEYS_MAX)
            seen[index] |= (unsigned char)(1U << bit);
    }
}

/* Every answered creation and revocation is in the audit trail. */
static void check_events(struct torture *torture, size_t *ret_pages)
{
    static unsigned char seen[HISTORY_KEYS_MAX];
    struct fixture_session session;
    char target[128], cursor[ID_TEXT_BYTES] = "", more[8] = "true";

    fixture_add_session(&torture->fixture, &torture->fixture.user, false, &session);
    for (*ret_pages = 0; strcmp(more, "true") == 0; ++*ret_pages) {
        snprintf(target, sizeof target, "/v1/console/audit_events?limit=100%s%s", cursor[0] ? "&starting_after=" : "",
                 cursor);
        const struct http_call call = {.target = target, .cookie = session.token};
        if (fixture_call(&torture->fixture, 0, &call, &torture->answer) != 200) {
            violation(torture, "the audit trail can't be read", torture->answer.body);
            return;
        }
        note_events(torture, torture->answer.body, "\"api_key.created\"", seen, 0);
        note_events(torture, torture->answer.body, "\"api_key.revoked\"", seen, 1);
        for (const char *at = torture->answer.body; (at = strstr(at, "\"evt_")) != NULL; at++)
            snprintf(cursor, sizeof cursor, "%.30s", at + 1);
        if (!http_answer_json(&torture->answer, "has_more", more, sizeof more))
            break;
    }
    for (size_t i = 0; i < history_count(torture->history); i++) {
        struct key_knowledge key;
        history_at(torture->history, i, &key);
        if (!(seen[i] & 1))
            violation(torture, "no api_key.created event", key.id);
        if (key.revoke_answered && !(seen[i] & 2))
            violation(torture, "no api_key.revoked event", key.id);
    }
}

static void run_clients(struct torture *torture, int seconds)
{
    int64_t end = deadline_now_ms() + seconds * 1000;

    torture->plan.history = torture->history;
    torture->plan.manager = torture->fixture.manager.secret;
    torture->plan.nodes = NODES;
    torture->plan.seed = torture->seed;
    for (unsigned i = 0; i < NODES; i++)
        torture->plan.ports[i] = torture->fixture.nodes[i].port;
    clients_start(&torture->plan, THREADS);
    while (deadline_now_ms() < end) {
        sign_one_in(torture);
        pause_ms(1000 + below(torture, 3000));
        sign_one_in(torture);
        kill_redis(torture);
    }
    clients_join(&torture->plan);
}

static void judge(struct torture *torture, int seconds, unsigned seed)
{
    struct clients_counts *counts = &torture->plan.counts;
    unsigned sessions;
    size_t listed, pages;

    check_keys(torture);
    check_sessions(torture, &sessions);
    check_orphans(torture, &listed);
    check_events(torture, &pages);
    if (torture->worst_return_ms > BACK_WITHIN_MS)
        violation(torture, "a node took too long to serve again", "see below");
    torture->violations += counts->violations;
    printf("%d s, seed %u: Redis killed %u times; longest until both nodes served again %ld ms\n"
           "answered: %ld creations, %ld revocations, %u sessions; checks: %ld accepted, %ld refused; 503: %ld; "
           "broken: %ld\n"
           "afterwards: %zu keys active and known, %zu pages of audit events complete\n"
           "violations: %ld\n",
           seconds, seed, torture->kills, (long)torture->worst_return_ms, counts->created, counts->revoked, sessions,
           counts->accepted, counts->refused, counts->unavailable, counts->broken, listed, pages, torture->violations);
}

int main(int argc, char **argv)
{
    static struct torture torture;
    int seconds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 60;
    unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)getpid();

    torture.seed = seed;
    torture.history = history_create();
    fixture_start(&torture.fixture, NODES, (const char *const[]){"--audit-max", "10000000", NULL});
    for (int i = 0; i < SESSIONS_MAX && i < seconds / 2; i++) {
        char email[32];
        snprintf(email, sizeof email, "user%d@torture.test", i);
        fixture_add_user(&torture.fixture, email, &torture.users[i]);
    }
    run_clients(&torture, seconds);
    pause_ms(SETTLE_MS);
    judge(&torture, seconds, seed);
    fixture_stop(&torture.fixture);
    history_destroy(torture.history);
    return torture.violations == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

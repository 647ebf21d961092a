#include "aftermath.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACK_WITHIN_MS = 5000,
    SETTLE_MS = 6000, /* longer than a discarded key is tried again after */
    STEP_MS = 5,
    SEEN_CREATED = 1,
    SEEN_REVOKED = 2
};

enum {
    WHY_BYTES = 200,
    NS_PER_MS = 1000000,
    ASKED_WITHIN_MS = 30000, /* its revocation by the node may be lost with the store, even if nobody was told of it */
    REVOKED_WITHIN_MS = 20000, /* after the faults of that time were healed, by the node itself */
    /* The loss of one primary, of another, and moves between them that wait for both, follow each other. */
    REVOKED_WITHIN_IN_CLUSTER_MS = 90000
};

struct inspection {
    struct cluster *cluster;
    struct history *history;
    const struct clients *clients;
    struct http_answer answer;
};

/* Until it accepts the manager of that account. */
static bool await_node(struct inspection *inspection, unsigned node, unsigned account, int64_t start_ms)
{
    const struct http_call call = {.target = "/v1/whoami",
                                   .bearer = inspection->cluster->accounts[account].manager.secret};

    while (cluster_call(inspection->cluster, node, &call, &inspection->answer) != 200) {
        if (deadline_now_ms() - start_ms > 4 * BACK_WITHIN_MS)
            return false;
        poll(NULL, 0, STEP_MS);
    }
    return true;
}

static void time_return(struct inspection *inspection, struct aftermath *aftermath)
{
    unsigned account_count = inspection->cluster->account_count;
    int64_t start = deadline_now_ms();

    for (unsigned i = 0; i < CLUSTER_NODES * account_count; i++)
        if (!await_node(inspection, i / account_count, i % account_count, start)) {
            history_violation(inspection->history, "a node does not serve again", inspection->answer.body);
            return;
        }
    aftermath->back_ms = deadline_now_ms() - start;
    if (aftermath->back_ms > BACK_WITHIN_MS)
        history_violation(inspection->history, "a node took too long to serve again", "see below");
}

/* Through the history, as one more check of each key: 503 is no excuse any more. */
static void check_keys(struct inspection *inspection)
{
    for (uint32_t key = 0; key < history_count(inspection->history); key++) {
        const struct http_call call = {.target = "/v1/whoami", .bearer = history_secret(inspection->history, key)};
        struct event event = {.start_ns = history_now_ns(), .key = key, .kind = EVENT_CHECK};

        event.node = (uint8_t)(key % CLUSTER_NODES);
        event.status = (uint16_t)cluster_call(inspection->cluster, event.node, &call, &inspection->answer);
        event.end_ns = history_now_ns();
        if (event.status >= 400 && event.status != 503)
            event.code =
                strcmp(http_answer_code(&inspection->answer), "api_key_revoked") == 0 ? CODE_REVOKED : CODE_OTHER;
        history_add(inspection->history, &event);
        if (event.status == 503)
            history_violation(inspection->history, "still 503 with Redis back", history_id(inspection->history, key));
    }
}

static void check_sessions(struct inspection *inspection, const struct fixture_user *users, unsigned user_count,
                           struct aftermath *aftermath)
{
    for (unsigned i = 0; i < user_count; i++) {
        struct fixture_session session;
        if (!clients_session(inspection->clients, i, &session))
            continue;
        const struct http_call call = {.target = "/v1/console/session", .cookie = session.token};
        if (cluster_call(inspection->cluster, i % CLUSTER_NODES, &call, &inspection->answer) != 200)
            history_violation(inspection->history, "an answered session is gone", users[i].email);
        else
            aftermath->sessions++;
    }
}

/* A key that is active though nobody has its secret: the node that could not tell its client of it (no answer came, or
 * 503 for Redis had not answered) revokes it, as long as that takes. Only a node that was ended before it could may
 * leave one. */
static bool is_excused(struct inspection *inspection, const char *name, char ret_why[WHY_BYTES])
{
    static const char PREFIX[] = "torture-";
    const struct creation *creation = NULL;

    if (strncmp(name, PREFIX, sizeof PREFIX - 1) == 0)
        creation = clients_creation(inspection->clients, strtoul(name + sizeof PREFIX - 1, NULL, 10));
    if (!creation) {
        snprintf(ret_why, WHY_BYTES, "nobody asked for '%s'", name);
        return false;
    }
    int64_t ended_ms = cluster_ended_ms(inspection->cluster, creation->node, creation->incarnation);
    snprintf(ret_why, WHY_BYTES, "%s, answered %d by node %u in its life %u, which ended %ld ms later (0: never)", name,
             creation->status, creation->node, creation->incarnation,
             ended_ms ? (long)(ended_ms - creation->end_ms) : 0);
    if (history_lost_ns(inspection->history, (creation->end_ms - ASKED_WITHIN_MS) * NS_PER_MS,
                        creation->end_ms * NS_PER_MS) != HISTORY_NEVER)
        return true;
    return creation->status != 201 && ended_ms &&
           ended_ms - creation->end_ms <
               (inspection->cluster->shards ? REVOKED_WITHIN_IN_CLUSTER_MS : REVOKED_WITHIN_MS);
}

static void check_listed(struct inspection *inspection, int index, char ret_id[HISTORY_ID_BYTES],
                         struct aftermath *aftermath)
{
    char path[32], name[64] = "", why[WHY_BYTES], what[WHY_BYTES + HISTORY_ID_BYTES + 4];

    snprintf(path, sizeof path, "data.%d.id", index);
    http_answer_json(&inspection->answer, path, ret_id, HISTORY_ID_BYTES);
    snprintf(path, sizeof path, "data.%d.name", index);
    http_answer_json(&inspection->answer, path, name, sizeof name);
    aftermath->active++;
    if (history_find(inspection->history, ret_id) != HISTORY_NO_KEY)
        return;
    if (is_excused(inspection, name, why)) {
        aftermath->orphans_excused++;
        return;
    }
    snprintf(what, sizeof what, "%s: %s", ret_id, why);
    history_violation(inspection->history, "active, and nobody has its secret", what);
}

static void check_orphans(struct inspection *inspection, unsigned account, struct aftermath *aftermath)
{
    char target[160], id[HISTORY_ID_BYTES] = "", more[8] = "true";

    while (strcmp(more, "true") == 0) {
        snprintf(target, sizeof target, "/v1/api_keys?limit=100&status=active&mode=test%s%s",
                 id[0] ? "&starting_after=" : "", id);
        const struct http_call call = {.target = target,
                                       .bearer = inspection->cluster->accounts[account].manager.secret};
        if (cluster_call(inspection->cluster, 0, &call, &inspection->answer) != 200 ||
            !http_answer_json(&inspection->answer, "has_more", more, sizeof more)) {
            history_violation(inspection->history, "the keys can't be listed", inspection->answer.body);
            return;
        }
        int count = http_answer_json_count(&inspection->answer, "data");
        for (int i = 0; i < count; i++)
            check_listed(inspection, i, id, aftermath);
    }
}

static bool may_be_lost(struct inspection *inspection, uint32_t key)
{
    const struct key_times *times = history_times(inspection->history, key);

    return history_lost_ns(inspection->history, times->asked_ns, times->created_ns) != HISTORY_NEVER;
}

static void note_events(struct inspection *inspection, const char *type, unsigned char *seen, unsigned char mark)
{
    for (const char *at = inspection->answer.body; (at = strstr(at, type)) != NULL; at++) {
        const char *target = strstr(at, "\"target\":\"");
        char id[HISTORY_ID_BYTES];

        if (!target)
            return;
        snprintf(id, sizeof id, "%.30s", target + strlen("\"target\":\""));
        uint32_t key = history_find(inspection->history, id);
        if (key != HISTORY_NO_KEY)
            seen[key] |= mark;
    }
}

static void read_events(struct inspection *inspection, unsigned account, unsigned char *seen,
                        struct aftermath *aftermath)
{
    struct fixture *fixture = &inspection->cluster->fixture;
    char target[128], cursor[ID_TEXT_BYTES] = "", more[8] = "true";
    struct fixture_session session;

    fixture_add_session(fixture, &inspection->cluster->accounts[account].user, false, &session);
    for (; strcmp(more, "true") == 0; aftermath->audit_pages++) {
        snprintf(target, sizeof target, "/v1/console/audit_events?limit=100%s%s", cursor[0] ? "&starting_after=" : "",
                 cursor);
        const struct http_call call = {.target = target, .cookie = session.token};
        if (cluster_call(inspection->cluster, 0, &call, &inspection->answer) != 200 ||
            !http_answer_json(&inspection->answer, "has_more", more, sizeof more)) {
            history_violation(inspection->history, "the audit trail can't be read", inspection->answer.body);
            return;
        }
        note_events(inspection, "\"api_key.created\"", seen, SEEN_CREATED);
        note_events(inspection, "\"api_key.revoked\"", seen, SEEN_REVOKED);
        for (const char *at = inspection->answer.body; (at = strstr(at, "\"evt_")) != NULL; at++)
            snprintf(cursor, sizeof cursor, "%.30s", at + 1);
    }
}

/* Every answered creation and revocation in the accounts whose keys clients make is in the audit trail. */
static void check_events(struct inspection *inspection, struct aftermath *aftermath)
{
    static unsigned char seen[HISTORY_KEYS_MAX];
    /* An end that lies ahead, or has only just come, has no event yet. */
    int64_t settled_ns = history_now_ns() - (int64_t)SETTLE_MS * NS_PER_MS;

    for (unsigned account = 0; account < inspection->cluster->account_count; account++)
        read_events(inspection, account, seen, aftermath);
    for (uint32_t key = 0; key < history_count(inspection->history); key++) {
        if (may_be_lost(inspection, key) || history_account(inspection->history, key) == HISTORY_NO_ACCOUNT)
            continue;
        if (!(seen[key] & SEEN_CREATED))
            history_violation(inspection->history, "no api_key.created event", history_id(inspection->history, key));
        if (history_times(inspection->history, key)->revoked_ns < settled_ns && !(seen[key] & SEEN_REVOKED))
            history_violation(inspection->history, "no api_key.revoked event", history_id(inspection->history, key));
    }
}

void aftermath_check(struct cluster *cluster, struct history *history, const struct clients *clients,
                     const struct fixture_user *users, unsigned user_count, struct aftermath *ret_aftermath)
{
    static struct inspection inspection;

    *ret_aftermath = (struct aftermath){0};
    inspection = (struct inspection){.cluster = cluster, .history = history, .clients = clients};
    time_return(&inspection, ret_aftermath);
    poll(NULL, 0, SETTLE_MS);
    check_keys(&inspection);
    check_sessions(&inspection, users, user_count, ret_aftermath);
    for (unsigned account = 0; account < cluster->account_count; account++)
        check_orphans(&inspection, account, ret_aftermath);
    check_events(&inspection, ret_aftermath);
    for (unsigned node = 0; node < CLUSTER_NODES; node++) {
        if (!cluster->programs[node]) /* a node of an earlier version may have no such metric */
            ret_aftermath->refreshes += cluster_metric(cluster, node, "chatelaine_cache_refreshes_total");
    }
}

#include "clients.h"

#include "base/clock.h"
#include "core/scope.h"
#include "exchange.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIVES_MAX = 1024,
    CREATIONS_MAX = HISTORY_KEYS_MAX * 2,
    TURN_MS = 1,
    CHECK_WITHIN_MS = 3000,
    CHANGE_WITHIN_MS = 8000,
    COMMANDS_MAX = 2, /* at once */
    TOGETHER_MAX = 50,
    AHEAD_MAX_MS = 3000, /* how far revocations are scheduled: over before what is left is looked at */
    MS_PER_S = 1000,
    OVERLAP_LEAST_S = 60, /* of a replacement, whatever it asks for */
    LEFT_TO_END = 16,     /* of so many keys that are replaced, one ends when that is over */
    LAST_ANSWERS_MS = 10000,
    NS_PER_MS = 1000000
};

/* One key from its creation until it has been dead for a while. */
struct life {
    bool used;
    bool is_used;
    bool dying; /* a revocation was tried */
    bool quiet; /* not checked until that is answered, for a check without a lease would mend the cache; and then
                   perhaps not at once */
    bool is_for_readers;  /* from its end on only they check it, for the same reason */
    uint32_t key, number; /* in the history, on the board */
    bool is_told;         /* to readers of tables: that it must be refused */
    int64_t die_at_ns;
    int64_t retire_at_ns;
    int64_t check_at_ns[CLUSTER_NODES];
    unsigned revokes_open;
    unsigned replacements; /* asked for */
    bool is_scheduled;     /* likewise, or it may have inherited an end; what it makes inherits that */
    int64_t ends_told_ns;  /* when that was answered; HISTORY_NEVER: not yet */
    int64_t ends_ns;
    uint32_t successor; /* the last that is known, or HISTORY_NO_KEY */
    uint32_t ends;      /* the key that ends when this one is used first, which has not been tried; or HISTORY_NO_KEY */
};

struct command {
    struct process process; /* pid 0: free */
    uint32_t key;
    int64_t start_ns;
};

struct clients {
    struct clients_plan plan;
    pthread_t thread;
    atomic_bool stop, ended;
    unsigned seed;
    struct exchange *exchange;
    struct life lives[LIVES_MAX];
    size_t life_count;
    int64_t create_at_ns, sign_in_at_ns;
    struct command commands[COMMANDS_MAX];
    unsigned command_count;
    size_t creation_count;
    struct creation *creations;
    unsigned signed_in;
    struct fixture_session sessions[CLIENTS_USERS_MAX];
    struct {
        int64_t asked_ns, answered_ns;
    } session_times[CLIENTS_USERS_MAX];
    struct clients_counts counts;
};

/* A request under way. */
struct asking {
    struct clients *clients;
    enum event_kind kind;
    unsigned node;
    uint32_t key;
    size_t number;               /* of a creation or a user; of keys that are revoked by a list */
    uint32_t keys[TOGETHER_MAX]; /* these */
    bool is_together;            /* one of many DELETEs at once */
    bool is_by_holder;
    bool ends_at_use;  /* with a replacement: of the successor */
    unsigned later_ms; /* after what begins at, or ends by, this request the key is to be revoked; see struct event */
    int64_t due_ns;    /* of a key whose revocation is scheduled */
};

static int64_t later_of(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

static unsigned ms_until(int64_t due_ns, int64_t now_ns)
{
    return due_ns > now_ns ? (unsigned)((due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

static unsigned below(struct clients *clients, unsigned bound)
{
    return (unsigned)rand_r(&clients->seed) % bound;
}

/* A random time between hundredths of the unit. */
static int64_t span_ns(struct clients *clients, unsigned from, unsigned to)
{
    return (int64_t)(from * 1000 + below(clients, (to - from) * 1000)) * clients->plan.unit_ms * (NS_PER_MS / 100000);
}

static struct life *find_life(struct clients *clients, uint32_t key)
{
    for (size_t i = 0; i < clients->life_count; i++) {
        if (clients->lives[i].used && clients->lives[i].key == key)
            return &clients->lives[i];
    }
    return NULL;
}

static bool send_request(struct clients *clients, const struct asking *asking, const char *bytes, size_t len,
                         unsigned late_ms, unsigned timeout_ms, exchange_done *done)
{
    struct asking *copy = malloc(sizeof *copy);

    if (!copy)
        abort();
    *copy = *asking;
    const struct exchange_request request = {.node = asking->node,
                                             .bytes = bytes,
                                             .len = len,
                                             .late_ms = late_ms,
                                             .timeout_ms = timeout_ms,
                                             .done = done,
                                             .arg = copy};
    bool is_sent = exchange_send(clients->exchange, &request);
    if (!is_sent)
        free(copy);
    else if (asking->kind < EVENT_KINDS)
        clients->counts.asked[asking->kind]++;
    return is_sent;
}

static void note(struct clients *clients, const struct asking *asking, uint32_t key,
                 const struct exchange_answer *answer)
{
    const struct event event = {.start_ns = answer->start_ns,
                                .end_ns = answer->end_ns,
                                .key = key,
                                .status = (uint16_t)answer->status,
                                .node = (uint8_t)asking->node,
                                .kind = (uint8_t)asking->kind,
                                .code = (uint8_t)history_code(answer->status, answer->body),
                                .later_ms = asking->later_ms};

    clients->counts.answered[asking->kind] += answer->status != 0 && answer->status != 503;
    if (!history_add(clients->plan.history, &event) && clients->plan.stop_at_violation)
        clients->stop = true;
}

/* Checks */

static void check_done(void *arg, const struct exchange_answer *answer)
{
    struct asking *asking = arg;
    struct clients_counts *counts = &asking->clients->counts;
    struct exchange_answer meant = *answer;

    if (asking->kind == EVENT_ROUTE && meant.status == 404 && strstr(meant.body, "\"not_found\""))
        meant.status = 200;
    counts->accepted += meant.status == 200;
    counts->refused += meant.status == 401;
    counts->unavailable += meant.status == 503;
    counts->unknown += meant.status == 0;
    if (asking->clients->plan.availability)
        availability_note(asking->clients->plan.availability,
                          history_account(asking->clients->plan.history, asking->key), meant.status, meant.end_ns);
    note(asking->clients, asking, asking->key, &meant);
    free(asking);
}

/* Mostly at once; some arrive in two parts, so that the node's clock must be read after the second. */
static void check(struct clients *clients, uint32_t key, unsigned node)
{
    char bytes[EXCHANGE_REQUEST_BYTES];
    bool on_route = below(clients, 8) == 0;
    unsigned late_ms = below(clients, 20) == 0 ? (unsigned)(span_ns(clients, 1, 150) / NS_PER_MS) : 0;
    const struct asking asking = {
        .clients = clients, .kind = on_route ? EVENT_ROUTE : EVENT_CHECK, .node = node, .key = key};
    int len = snprintf(bytes, sizeof bytes, "GET %s HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n\r\n",
                       on_route ? "/v1/patients/1" : "/v1/whoami", history_secret(clients->plan.history, key));

    if (!send_request(clients, &asking, bytes, (size_t)len, late_ms, CHECK_WITHIN_MS, check_done))
        clients->counts.kept_out++;
}

/* When the key should next be checked at a node: now and then while it lives, very often around its end. */
static int64_t next_check_ns(struct clients *clients, const struct life *life, int64_t now_ns)
{
    int64_t revoked_ns = history_times(clients->plan.history, life->key)->revoked_ns;

    if (revoked_ns == HISTORY_NEVER)
        return now_ns + (life->dying ? span_ns(clients, 1, 12) : span_ns(clients, 5, 60));
    int64_t dead_ns = now_ns - revoked_ns;
    if (dead_ns < -span_ns(clients, 30, 31)) /* its time is known, and lies ahead */
        return now_ns + span_ns(clients, 3, 25);
    if (dead_ns < span_ns(clients, 10, 11))
        return now_ns + span_ns(clients, 1, 3);
    return now_ns + (dead_ns < span_ns(clients, 200, 201) ? span_ns(clients, 3, 20) : span_ns(clients, 20, 80));
}

/* Creations */

/* Keys of clients have the scopes that create() asks for. */
static void show(struct clients *clients, struct life *life)
{
    const struct history *history = clients->plan.history;

    if (!clients->plan.board)
        return;
    life->number = board_add(clients->plan.board, history_id(history, life->key), history_secret(history, life->key),
                             SCOPE_KEYS_MANAGE | SCOPE_PATIENTS_READ, life->key);
    board_show(clients->plan.board, (size_t)(life - clients->lives), life->number);
}

/* At once where an answer says so, and when the time has come that was told. */
static void tell_readers(struct clients *clients, struct life *life)
{
    if (!clients->plan.board || life->is_told ||
        history_times(clients->plan.history, life->key)->revoked_ns >= history_now_ns())
        return;
    board_refuse(clients->plan.board, life->number);
    life->is_told = true;
}

/* NULL: it is never revoked, and not checked before the end. */
static struct life *life_begin(struct clients *clients, uint32_t key)
{
    /* Short lives are for reads that are under way when the revocation comes, long ones for caches. */
    static const unsigned ENDS[][2] = {{1, 30}, {1, 30}, {20, 150}, {20, 150}, {100, 500}};
    size_t which = below(clients, sizeof ENDS / sizeof *ENDS);
    int64_t now_ns = history_now_ns();
    size_t i = 0;

    while (i < clients->life_count && clients->lives[i].used)
        i++;
    if (i == LIVES_MAX || below(clients, 20) == 0) /* some are never revoked */
        return NULL;
    if (i == clients->life_count)
        clients->life_count++;
    struct life *life = &clients->lives[i];
    *life = (struct life){.used = true,
                          .key = key,
                          .retire_at_ns = HISTORY_NEVER,
                          .ends_told_ns = HISTORY_NEVER,
                          .successor = HISTORY_NO_KEY,
                          .ends = HISTORY_NO_KEY};
    life->die_at_ns = now_ns + span_ns(clients, ENDS[which][0], ENDS[which][1]);
    life->quiet = below(clients, 2);
    life->is_for_readers = clients->plan.board && below(clients, 4) == 0;
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        life->check_at_ns[node] = now_ns;
    show(clients, life);
    return life;
}

/* The new key, or HISTORY_NO_KEY. */
static uint32_t read_created(struct clients *clients, const struct exchange_answer *answer, size_t number)
{
    char id[HISTORY_ID_BYTES] = "", secret[HISTORY_SECRET_BYTES] = "";
    uint32_t key = HISTORY_NO_KEY;

    clients->creations[number].status = answer->status;
    clients->creations[number].end_ms = deadline_now_ms();
    if (answer->status == 201 && exchange_copy_after(answer->body, "\"id\":\"", id, sizeof id) &&
        exchange_copy_after(answer->body, "\"secret\":\"", secret, sizeof secret))
        key = history_add_key(clients->plan.history, clients->creations[number].account, id, secret);
    else if (answer->status == 201)
        history_violation(clients->plan.history, "a creation without id or secret", answer->body);
    return key;
}

static void create_done(void *arg, const struct exchange_answer *answer)
{
    struct asking *asking = arg;
    struct clients *clients = asking->clients;
    uint32_t key = read_created(clients, answer, asking->number);

    cluster_other_ends(clients->plan.cluster);
    note(clients, asking, key, answer);
    if (key != HISTORY_NO_KEY)
        (void)life_begin(clients, key);
    free(asking);
}

/* The use of a successor may end it, a repeated replacement unless it was used, or an end that it has inherited. */
static void note_may_end(struct clients *clients, uint32_t key, int64_t from_ns)
{
    const struct event event = {.start_ns = from_ns, .end_ns = from_ns, .key = key, .kind = EVENT_MAY_END};

    (void)history_add(clients->plan.history, &event);
}

static void use_begins(struct clients *clients, struct life *life)
{
    if (life->ends != HISTORY_NO_KEY)
        note_may_end(clients, life->ends, history_now_ns());
    life->ends = HISTORY_NO_KEY;
    life->is_used = true;
}

/* A key inherits its maker's end, if that end was answered before the key was made; otherwise its end is unknown. life:
 * of the key that was made; may be NULL. */
static void note_inherited_end(struct clients *clients, uint32_t key, struct life *life, uint32_t maker,
                               const struct exchange_answer *answer)
{
    const struct life *from = find_life(clients, maker);
    bool is_known = from && from->ends_told_ns < answer->start_ns;
    struct event event = {
        .start_ns = answer->start_ns, .end_ns = answer->end_ns, .key = key, .status = 200, .kind = EVENT_SCHEDULE};

    if (from && !from->is_scheduled)
        return;
    if (life)
        life->is_scheduled = true;
    if (!is_known) {
        note_may_end(clients, key, answer->start_ns);
        return;
    }
    event.later_ms = ms_until(from->ends_ns, answer->start_ns);
    (void)history_add(clients->plan.history, &event);
    clients->counts.inherited++;
    if (!life)
        return;
    life->ends_told_ns = answer->end_ns;
    life->ends_ns = from->ends_ns;
}

static void successor_done(void *arg, const struct exchange_answer *answer)
{
    struct asking *asking = arg;
    struct clients *clients = asking->clients;
    uint32_t key = read_created(clients, answer, asking->number);
    struct asking created = *asking;

    cluster_other_ends(clients->plan.cluster);
    note(clients, asking, asking->key, answer);
    created.kind = EVENT_CREATE;
    if (key != HISTORY_NO_KEY) {
        clients->counts.asked[EVENT_CREATE]++;
        note(clients, &created, key, answer);
        note_inherited_end(clients, key, life_begin(clients, key), asking->key, answer);
    }
    free(asking);
}

static const char *manager_of(const struct clients *clients, unsigned account)
{
    return clients->plan.cluster->accounts[account].manager.secret;
}

/* Fills in the next creation; it counts once it is sent. */
static bool creation_begins(struct clients *clients, unsigned node, unsigned account)
{
    if (clients->creation_count == CREATIONS_MAX || !cluster_other_begins(clients->plan.cluster))
        return false;
    clients->creations[clients->creation_count] =
        (struct creation){.node = (uint8_t)node,
                          .account = (uint8_t)account,
                          .incarnation = (uint16_t)cluster_incarnation(clients->plan.cluster, node)};
    return true;
}

/* by: the key that asks; HISTORY_NO_KEY: the manager, at once. */
static void create(struct clients *clients, uint32_t by, unsigned late_ms)
{
    char bytes[EXCHANGE_REQUEST_BYTES], body[160];
    unsigned node = below(clients, CLUSTER_NODES);
    size_t number = clients->creation_count;
    bool by_manager = by == HISTORY_NO_KEY;
    unsigned account =
        by_manager ? below(clients, clients->plan.cluster->account_count) : history_account(clients->plan.history, by);
    const struct asking asking = {.clients = clients,
                                  .kind = by_manager ? EVENT_CREATE : EVENT_SUCCESSOR,
                                  .node = node,
                                  .key = by,
                                  .number = number};

    if (!creation_begins(clients, node, account))
        return;
    int body_len =
        snprintf(body, sizeof body,
                 "{\"name\":\"torture-%zu\",\"mode\":\"test\",\"scopes\":[\"keys:manage\",\"patients:read\"]}", number);
    int len =
        snprintf(bytes, sizeof bytes,
                 "POST /v1/api_keys HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n"
                 "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                 by_manager ? manager_of(clients, account) : history_secret(clients->plan.history, by), body_len, body);
    if (send_request(clients, &asking, bytes, (size_t)len, late_ms, CHANGE_WITHIN_MS,
                     by_manager ? create_done : successor_done))
        clients->creation_count++;
    else
        cluster_other_ends(clients->plan.cluster);
}

/* Revocations */

static void revoke_ended(struct clients *clients, uint32_t key, const struct exchange_answer *answer)
{
    struct life *life = find_life(clients, key);
    int64_t ms = (answer->end_ns - answer->start_ns) / NS_PER_MS;

    if (answer->status == 200) {
        clients->counts.revoke_ms_sum += (double)ms;
        if (ms > clients->counts.revoke_ms_max)
            clients->counts.revoke_ms_max = ms;
    }
    if (!life)
        return;
    life->revokes_open--;
    tell_readers(clients, life);
    if (answer->status != 200) {
        if (life->revokes_open == 0)
            life->die_at_ns = history_now_ns() + span_ns(clients, 1, 60);
        return;
    }
    if (life->retire_at_ns == HISTORY_NEVER)
        life->retire_at_ns = history_now_ns() + span_ns(clients, 250, 450);
    /* The moment that the promise speaks of. */
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        life->check_at_ns[node] = answer->end_ns + (life->quiet ? span_ns(clients, 0, below(clients, 2) * 150 + 1) : 0);
}

static void revoke_done(void *arg, const struct exchange_answer *answer)
{
    struct asking *asking = arg;

    asking->clients->counts.held[1] += asking->is_by_holder && answer->status == 200;
    note(asking->clients, asking, asking->key, answer);
    revoke_ended(asking->clients, asking->key, answer);
    asking->clients->counts.together[1] += asking->is_together && answer->status == 200;
    free(asking);
}

static void revoke_at(struct clients *clients, struct life *life, unsigned node, bool is_together)
{
    char bytes[EXCHANGE_REQUEST_BYTES];
    const struct asking asking = {
        .clients = clients, .kind = EVENT_REVOKE, .node = node, .key = life->key, .is_together = is_together};
    int len = snprintf(bytes, sizeof bytes,
                       "DELETE /v1/api_keys/%s HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n\r\n",
                       history_id(clients->plan.history, life->key),
                       manager_of(clients, history_account(clients->plan.history, life->key)));

    history_revoke_begins(clients->plan.history, life->key, history_now_ns());
    if (!send_request(clients, &asking, bytes, (size_t)len, 0, CHANGE_WITHIN_MS, revoke_done))
        return;
    life->revokes_open++;
    clients->counts.together[0] += is_together;
}

static void revoke_by_holder(struct clients *clients, struct life *life, unsigned node)
{
    char bytes[EXCHANGE_REQUEST_BYTES], body[HISTORY_SECRET_BYTES + 8];
    const struct asking asking = {
        .clients = clients, .kind = EVENT_REVOKE, .node = node, .key = life->key, .is_by_holder = true};
    int body_len = snprintf(body, sizeof body, "token=%s", history_secret(clients->plan.history, life->key));
    int len = snprintf(bytes, sizeof bytes,
                       "POST /v1/auth/revoke HTTP/1.1\r\nHost: api.test\r\n"
                       "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
                       body_len, body);

    history_revoke_begins(clients->plan.history, life->key, history_now_ns());
    if (!send_request(clients, &asking, bytes, (size_t)len, 0, CHANGE_WITHIN_MS, revoke_done))
        return;
    life->revokes_open++;
    clients->counts.held[0]++;
}

/* Ends that lie ahead */

static void attempt_begins(struct clients *clients, const struct asking *asking)
{
    const struct event event = {
        .start_ns = history_now_ns(), .kind = (uint8_t)asking->kind, .later_ms = asking->later_ms};
    int64_t from_ns;

    if (history_ends_key(&event, &from_ns))
        history_revoke_begins(clients->plan.history, asking->key, from_ns);
}

/* A key whose end was told is checked until its time and for a while after it; for another one, something is tried
 * again. */
static void end_told(struct clients *clients, uint32_t key, bool is_told)
{
    struct life *life = find_life(clients, key);
    int64_t now_ns = history_now_ns();

    if (!life)
        return;
    life->revokes_open--;
    if (!is_told && life->revokes_open == 0)
        life->die_at_ns = now_ns + span_ns(clients, 1, 60);
    if (!is_told)
        return;
    life->retire_at_ns =
        later_of(now_ns, history_times(clients->plan.history, key)->revoked_ns) + span_ns(clients, 250, 450);
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        life->check_at_ns[node] = now_ns;
}

/* A node that was paused hears of the time when it is over, and says so. */
static bool is_too_late(const struct asking *asking, const struct exchange_answer *answer)
{
    return answer->status == 400 && answer->end_ns >= asking->due_ns - HISTORY_ROUNDED_NS &&
           strstr(answer->body, "must be in the future");
}

static void schedule_done(void *arg, const struct exchange_answer *answer)
{
    struct asking *asking = arg;
    struct exchange_answer meant = *answer;
    struct life *life = find_life(asking->clients, asking->key);

    if (is_too_late(asking, answer))
        meant.status = 503;
    asking->later_ms = ms_until(asking->due_ns, answer->start_ns);
    if (life && meant.status == 200) {
        life->ends_told_ns = answer->end_ns;
        life->ends_ns = asking->due_ns;
    }
    note(asking->clients, asking, asking->key, &meant);
    end_told(asking->clients, asking->key, meant.status == 200);
    free(asking);
}

/* A wall-clock time in so many milliseconds, and when that is, at most HISTORY_ROUNDED_NS too late. */
static int64_t wall_ms_in(unsigned later_ms, int64_t *ret_at_ns)
{
    int64_t before_ns, wall_ms, now_ns;

    do {
        before_ns = history_now_ns();
        wall_ms = clock_wall_ms();
        now_ns = history_now_ns();
    } while (now_ns - before_ns > NS_PER_MS);
    *ret_at_ns = now_ns + (int64_t)later_ms * NS_PER_MS;
    return wall_ms + later_ms;
}

/* Redis and this process go by one clock, so its time is known. */
static void schedule(struct clients *clients, struct life *life, unsigned node)
{
    char bytes[EXCHANGE_REQUEST_BYTES], body[64], at[CLOCK_RFC3339_BYTES];
    struct asking asking = {.clients = clients, .kind = EVENT_SCHEDULE, .node = node, .key = life->key};

    asking.later_ms = 100 + (unsigned)(span_ns(clients, 0, 200) / NS_PER_MS);
    if (asking.later_ms > AHEAD_MAX_MS)
        asking.later_ms = AHEAD_MAX_MS;
    clock_print_rfc3339(wall_ms_in(asking.later_ms, &asking.due_ns), at);
    int body_len = snprintf(body, sizeof body, "{\"revoke_at\":\"%s\"}", at);
    int len = snprintf(bytes, sizeof bytes,
                       "PUT /v1/api_keys/%s/scheduled_revocation HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer "
                       "%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                       history_id(clients->plan.history, life->key),
                       manager_of(clients, history_account(clients->plan.history, life->key)), body_len, body);
    attempt_begins(clients, &asking);
    life->is_scheduled = true;
    life->revokes_open += send_request(clients, &asking, bytes, (size_t)len, 0, CHANGE_WITHIN_MS, schedule_done);
}

/* A repetition was answered with another successor. Then the earlier one has ended, unless it was used and somebody is
 * just revoking it: that revocation has an answer of its own. */
static void note_replaced_successor(struct clients *clients, uint32_t key, const struct exchange_answer *answer)
{
    const struct life *life = find_life(clients, key);
    const struct event end = {
        .start_ns = answer->start_ns, .end_ns = answer->end_ns, .key = key, .status = 200, .kind = EVENT_REVOKE};

    if (life && life->is_used && life->dying)
        return;
    clients->counts.successors_ended++;
    (void)history_add(clients->plan.history, &end);
}

/* Whoever repeats the request until it is answered has a secret that works: of the key that is made then, or of the one
 * that is said to be in use. */
static void note_successor(struct clients *clients, struct life *replaced, uint32_t key,
                           const struct exchange_answer *answer)
{
    struct history *history = clients->plan.history;
    bool is_in_use = history_code(answer->status, answer->body) == CODE_REPLACED;

    if (is_in_use &&
        (replaced->successor == HISTORY_NO_KEY || !strstr(answer->body, history_id(history, replaced->successor))))
        history_violation(history, "replaced by a key whose secret nobody has", answer->body);
    clients->counts.successors_used += is_in_use;
    if (key == HISTORY_NO_KEY)
        return;
    if (replaced->successor != HISTORY_NO_KEY)
        note_replaced_successor(clients, replaced->successor, answer);
    replaced->successor = key;
}

/* Some begin to use it later, so that a repetition comes before. */
static void successor_begins(struct clients *clients, struct life *life, const struct asking *asking)
{
    int64_t later_ns = below(clients, 2) ? span_ns(clients, 0, 100) : 0;

    if (!life)
        return;
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        life->check_at_ns[node] += later_ns;
    if (asking->ends_at_use)
        life->ends = asking->key;
}

/* The other key goes on, for a minute at least. It is left to end then, or another way ends it. */
static void replace_done(void *arg, const struct exchange_answer *answer)
{
    struct asking *asking = arg;
    struct clients *clients = asking->clients;
    uint32_t key = read_created(clients, answer, asking->number);
    struct life *replaced = find_life(clients, asking->key), *life;
    struct asking created = *asking;

    cluster_other_ends(clients->plan.cluster);
    note(clients, asking, asking->key, answer);
    if (replaced)
        note_successor(clients, replaced, key, answer);
    end_told(clients, asking->key, answer->status == 201 && below(clients, LEFT_TO_END) == 0);
    created.kind = EVENT_CREATE;
    created.later_ms = 0;
    if (key != HISTORY_NO_KEY) {
        clients->counts.asked[EVENT_CREATE]++;
        note(clients, &created, key, answer);
        life = life_begin(clients, key);
        note_inherited_end(clients, key, life, asking->key, answer);
        successor_begins(clients, life, asking);
    }
    free(asking);
}

static void replace(struct clients *clients, struct life *life, unsigned node)
{
    char bytes[EXCHANGE_REQUEST_BYTES], body[80];
    unsigned account = history_account(clients->plan.history, life->key), overlap_s = below(clients, 3);
    const int64_t now_ns = history_now_ns();
    const struct asking asking = {.clients = clients,
                                  .kind = EVENT_REPLACE,
                                  .node = node,
                                  .key = life->key,
                                  .number = clients->creation_count,
                                  .ends_at_use = overlap_s == 0,
                                  .later_ms = OVERLAP_LEAST_S * MS_PER_S};

    if (!creation_begins(clients, node, account))
        return;
    int body_len =
        snprintf(body, sizeof body, "{\"overlap_seconds\":%u,\"name\":\"torture-%zu\"}", overlap_s, asking.number);
    int len = snprintf(bytes, sizeof bytes,
                       "POST /v1/api_keys/%s/replacement HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n"
                       "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                       history_id(clients->plan.history, life->key), manager_of(clients, account), body_len, body);
    attempt_begins(clients, &asking);
    if (life->successor != HISTORY_NO_KEY)
        note_may_end(clients, life->successor, now_ns);
    if (send_request(clients, &asking, bytes, (size_t)len, 0, CHANGE_WITHIN_MS, replace_done)) {
        clients->counts.repeated += life->replacements++ > 0;
        clients->creation_count++;
        life->revokes_open++;
    } else {
        cluster_other_ends(clients->plan.cluster);
    }
}

static bool may_be_lost(const struct clients *clients, uint32_t key)
{
    const struct key_times *times = history_times(clients->plan.history, key);

    return history_lost_ns(clients->plan.history, times->asked_ns, times->created_ns) != HISTORY_NEVER;
}

/* What the answer to a list says of one key. A node of an earlier version, which knows no lists, has done nothing; nor
 * has one where the account has as many lists under way as it may have, as while nodes are slow: it is asked later. */
static int status_in_list(struct clients *clients, uint32_t key, const struct exchange_answer *answer)
{
    const char *id = history_id(clients->plan.history, key);
    const char *unknown = strstr(answer->body, "\"not_found\""), *found = strstr(answer->body, id);
    bool is_left_out = !unknown || !found || found > unknown;

    if (answer->status == 404 || answer->status == 405 || (is_left_out && may_be_lost(clients, key)))
        return 0;
    if (answer->status == 429 && strstr(answer->body, "too much under way"))
        return 503;
    if (answer->status == 200 && is_left_out)
        history_violation(clients->plan.history, "a list that was revoked leaves out a key", id);
    return answer->status;
}

static void list_done(void *arg, const struct exchange_answer *answer)
{
    struct asking *asking = arg;
    struct clients *clients = asking->clients;

    for (size_t i = 0; i < asking->number; i++) {
        struct exchange_answer meant = *answer;

        meant.status = status_in_list(clients, asking->keys[i], answer);
        note(clients, asking, asking->keys[i], &meant);
        revoke_ended(clients, asking->keys[i], &meant);
        clients->counts.lists[1] += meant.status == 200;
    }
    free(asking);
}

static void revoke_list_at(struct clients *clients, struct life *const *lives, size_t count, unsigned node)
{
    char bytes[EXCHANGE_REQUEST_BYTES], body[TOGETHER_MAX * (HISTORY_ID_BYTES + 4) + 16];
    struct asking asking = {.clients = clients, .kind = EVENT_REVOKE, .node = node, .number = count};
    int body_len = snprintf(body, sizeof body, "{\"ids\":[");

    for (size_t i = 0; i < count; i++) {
        asking.keys[i] = lives[i]->key;
        body_len += snprintf(body + body_len, sizeof body - (size_t)body_len, "%s\"%s\"", i > 0 ? "," : "",
                             history_id(clients->plan.history, lives[i]->key));
        history_revoke_begins(clients->plan.history, lives[i]->key, history_now_ns());
    }
    body_len += snprintf(body + body_len, sizeof body - (size_t)body_len, "]}");
    int len = snprintf(bytes, sizeof bytes,
                       "POST /v1/api_keys/revoke HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n"
                       "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                       manager_of(clients, history_account(clients->plan.history, lives[0]->key)), body_len, body);
    if (!send_request(clients, &asking, bytes, (size_t)len, 0, CHANGE_WITHIN_MS, list_done))
        return;
    clients->counts.asked[EVENT_REVOKE] += count - 1;
    clients->counts.lists[0] += count;
    for (size_t i = 0; i < count; i++)
        lives[i]->revokes_open++;
}

/* Up to so many lives of the account of the first that no revocation was tried for. */
static size_t find_company(struct clients *clients, struct life **lives, size_t most)
{
    unsigned account = history_account(clients->plan.history, lives[0]->key);
    size_t count = 1;

    for (size_t i = 0; i < clients->life_count && count < most; i++) {
        struct life *life = &clients->lives[i];

        if (life->used && !life->dying && history_account(clients->plan.history, life->key) == account &&
            life != lives[0])
            lives[count++] = life;
    }
    return count;
}

static void dying_begins(struct life *life, int64_t now_ns)
{
    life->dying = true;
    life->die_at_ns = HISTORY_NEVER;
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        life->check_at_ns[i] = now_ns;
}

static void begin_successor(struct clients *clients, struct life *life);

/* A life ends before its time, with others: by a list, or by as many DELETEs at once, which leave in groups. */
static void revoke_together(struct clients *clients, struct life *first, int64_t now_ns)
{
    struct life *lives[TOGETHER_MAX] = {first};
    size_t count = find_company(clients, lives, 2 + below(clients, TOGETHER_MAX - 1));
    bool is_list = below(clients, 2);
    unsigned node = below(clients, CLUSTER_NODES);

    for (size_t i = 0; i < count; i++) {
        begin_successor(clients, lives[i]);
        dying_begins(lives[i], now_ns);
    }
    if (is_list)
        revoke_list_at(clients, lives, count, node);
    for (size_t i = 0; i < count; i++) {
        if (!is_list)
            revoke_at(clients, lives[i], node, true);
        if (lives[i]->revokes_open == 0)
            lives[i]->die_at_ns = now_ns + span_ns(clients, 1, 60);
    }
}

static bool revoke_by_command(struct clients *clients, struct life *life)
{
    const struct fixture *fixture = &clients->plan.cluster->fixture;
    const char *program = clients->plan.cluster->command_programs[clients->counts.asked[EVENT_COMMAND] % 2];
    const char *argv[] = {program ? program : node_binary(),
                          "key",
                          "revoke",
                          history_id(clients->plan.history, life->key),
                          "--redis",
                          fixture->redis.url,
                          "--master-key-file",
                          fixture->master_key_path,
                          NULL};
    struct command *command = clients->commands;

    while (command < clients->commands + COMMANDS_MAX && command->process.pid != 0)
        command++;
    if (command == clients->commands + COMMANDS_MAX || !cluster_other_begins(clients->plan.cluster))
        return false;
    command->key = life->key;
    command->start_ns = history_now_ns();
    history_revoke_begins(clients->plan.history, life->key, command->start_ns);
    process_start(&command->process, fixture->folder, "revoke", argv);
    clients->counts.asked[EVENT_COMMAND]++;
    life->revokes_open++;
    return true;
}

static void look_at_commands(struct clients *clients)
{
    for (struct command *command = clients->commands; command < clients->commands + COMMANDS_MAX; command++) {
        if (command->process.pid == 0 || !process_wait(&command->process, 0))
            continue;
        const struct asking asking = {
            .clients = clients, .kind = EVENT_COMMAND, .node = CLUSTER_NODES, .key = command->key};
        const struct exchange_answer answer = {.status = process_exit_code(&command->process) == 0 ? 200 : 0,
                                               .start_ns = command->start_ns,
                                               .end_ns = history_now_ns(),
                                               .head = "",
                                               .body = ""};
        cluster_other_ends(clients->plan.cluster);
        note(clients, &asking, command->key, &answer);
        revoke_ended(clients, command->key, &answer);
    }
}

/* The key asks for another one whose request's end comes about when its own revocation is answered. Not with keys that
 * are not to be checked meanwhile. */
static void begin_successor(struct clients *clients, struct life *life)
{
    if (life->quiet || below(clients, 4) > 0)
        return;
    use_begins(clients, life);
    create(clients, life->key, 1 + (unsigned)(span_ns(clients, 0, 100) / NS_PER_MS));
}

/* Nodes of an earlier version do not. */
static bool knows_all_ways(const struct clients *clients)
{
    return clients->plan.endings != NULL;
}

static void revoke_otherwise(struct clients *clients, struct life *life, unsigned node)
{
    static void (*const WAYS[])(struct clients *, struct life *, unsigned) = {replace, revoke_by_holder, schedule,
                                                                              schedule};

    /* A key moves no end that stands to a later time. */
    WAYS[below(clients, life->is_scheduled ? 2 : sizeof WAYS / sizeof *WAYS)](clients, life, node);
}

/* Whether that was answered or not. */
static void replace_again(struct clients *clients, struct life *life, unsigned node, int64_t now_ns)
{
    replace(clients, life, node);
    life->die_at_ns = life->revokes_open > 0 ? HISTORY_NEVER : now_ns + span_ns(clients, 1, 60);
}

/* Once, or at two nodes at about the same time. */
static void revoke(struct clients *clients, struct life *life, int64_t now_ns)
{
    unsigned node = below(clients, CLUSTER_NODES);

    if (below(clients, 16) == 0) {
        revoke_together(clients, life, now_ns);
        return;
    }
    if (life->replacements > 0 && life->revokes_open == 0 && below(clients, 2) == 0) {
        replace_again(clients, life, node, now_ns);
        return;
    }
    begin_successor(clients, life);
    bool is_first = !life->dying;
    dying_begins(life, now_ns);
    if (is_first && knows_all_ways(clients) && below(clients, 3) == 0) {
        revoke_otherwise(clients, life, node);
        if (life->revokes_open == 0)
            life->die_at_ns = now_ns + span_ns(clients, 1, 60);
        return;
    }
    if (clients->command_count++ % 64 == 63 && revoke_by_command(clients, life))
        return;
    revoke_at(clients, life, node, false);
    if (below(clients, 3) == 0)
        revoke_at(clients, life, (node + 1 + below(clients, CLUSTER_NODES - 1)) % CLUSTER_NODES, false);
    else if (below(clients, 3) == 0)
        life->die_at_ns = now_ns + span_ns(clients, 1, 130); /* again, though the first may not be answered yet */
    if (life->revokes_open == 0)
        life->die_at_ns = now_ns + span_ns(clients, 1, 60);
}

/* People */

static void sign_in_done(void *arg, const struct exchange_answer *answer)
{
    struct asking *asking = arg;
    struct fixture_session *session = &asking->clients->sessions[asking->number];

    cluster_other_ends(asking->clients->plan.cluster);
    asking->clients->session_times[asking->number].asked_ns = answer->start_ns;
    asking->clients->session_times[asking->number].answered_ns = answer->end_ns;
    if (answer->status == 200)
        (void)exchange_copy_after(answer->head, "__Host-session=", session->token, sizeof session->token);
    free(asking);
}

/* One user after the other, for a code counts once. Whether it works now depends on the faults; what was answered must
 * hold. */
static void sign_in(struct clients *clients)
{
    char bytes[EXCHANGE_REQUEST_BYTES], body[256], code[8];
    const struct fixture_user *user = &clients->plan.users[clients->signed_in];
    const struct asking asking = {.clients = clients,
                                  .kind = EVENT_KINDS,
                                  .node = below(clients, CLUSTER_NODES),
                                  .key = HISTORY_NO_KEY,
                                  .number = clients->signed_in++};

    fixture_totp(user, 0, code);
    int body_len = snprintf(body, sizeof body, "{\"email\":\"%s\",\"password\":\"%s\",\"totp\":\"%s\"}", user->email,
                            FIXTURE_PASSWORD, code);
    int len = snprintf(bytes, sizeof bytes,
                       "POST /v1/auth/login HTTP/1.1\r\nHost: api.test\r\nContent-Type: application/json\r\n"
                       "Content-Length: %d\r\n\r\n%s",
                       body_len, body);
    if (!send_request(clients, &asking, bytes, (size_t)len, 0, CHANGE_WITHIN_MS, sign_in_done))
        cluster_other_ends(clients->plan.cluster);
}

/* The thread */

static void look_at_life(struct clients *clients, struct life *life, int64_t now_ns)
{
    tell_readers(clients, life);
    if (life->retire_at_ns <= now_ns && life->revokes_open == 0) {
        life->used = false;
        if (clients->plan.board)
            board_hide(clients->plan.board, (size_t)(life - clients->lives));
        return;
    }
    if (life->die_at_ns <= now_ns)
        revoke(clients, life, now_ns);
    bool is_spared = life->dying && (life->is_for_readers || (life->quiet && life->retire_at_ns == HISTORY_NEVER));
    for (unsigned node = 0; node < CLUSTER_NODES && !is_spared; node++) {
        if (life->check_at_ns[node] > now_ns)
            continue;
        use_begins(clients, life);
        check(clients, life->key, node);
        life->check_at_ns[node] = next_check_ns(clients, life, now_ns);
    }
}

static void look_at_clock(struct clients *clients)
{
    int64_t now_ns = history_now_ns();

    if (clients->create_at_ns <= now_ns) {
        create(clients, HISTORY_NO_KEY, 0);
        clients->create_at_ns =
            now_ns + (int64_t)(below(clients, 2000) + 1) * NS_PER_MS / clients->plan.keys_per_second;
    }
    if (clients->signed_in < clients->plan.user_count && clients->sign_in_at_ns <= now_ns &&
        cluster_other_begins(clients->plan.cluster)) {
        sign_in(clients);
        clients->sign_in_at_ns = now_ns + INT64_C(4000) * NS_PER_MS;
    }
    look_at_commands(clients);
    if (clients->plan.endings && !endings_turn(clients->plan.endings, clients->exchange) &&
        clients->plan.stop_at_violation)
        clients->stop = true;
    if (clients->plan.readers && !table_readers_turn(clients->plan.readers) && clients->plan.stop_at_violation)
        clients->stop = true;
    for (size_t i = 0; i < clients->life_count; i++) {
        if (clients->lives[i].used)
            look_at_life(clients, &clients->lives[i], now_ns);
    }
}

static bool is_command_open(const struct clients *clients)
{
    for (int i = 0; i < COMMANDS_MAX; i++) {
        if (clients->commands[i].process.pid != 0)
            return true;
    }
    return false;
}

static void *clients_run(void *arg)
{
    struct clients *clients = arg;

    while (!clients->stop && !history_is_full(clients->plan.history)) {
        exchange_turn(clients->exchange, TURN_MS);
        look_at_clock(clients);
    }
    struct deadline deadline = deadline_in(LAST_ANSWERS_MS);
    bool is_ending = clients->plan.endings;
    while ((exchange_open(clients->exchange) > 0 || is_command_open(clients) || is_ending) &&
           deadline_left_ms(deadline) > 0) {
        exchange_turn(clients->exchange, TURN_MS);
        look_at_commands(clients);
        is_ending = clients->plan.endings && endings_wind_down(clients->plan.endings);
    }
    exchange_destroy(clients->exchange);
    for (int i = 0; i < COMMANDS_MAX; i++)
        process_kill(&clients->commands[i].process);
    clients->ended = true;
    return NULL;
}

struct clients *clients_start(const struct clients_plan *plan)
{
    struct clients *clients = calloc(1, sizeof *clients);

    if (!clients)
        abort();
    clients->plan = *plan;
    clients->seed = plan->seed * 31 + 17;
    clients->exchange = exchange_create(cluster_open_socket, plan->cluster);
    clients->creations = calloc(CREATIONS_MAX, sizeof *clients->creations);
    if (!clients->creations || pthread_create(&clients->thread, NULL, clients_run, clients) != 0)
        abort();
    return clients;
}

bool clients_ended(const struct clients *clients)
{
    return clients->ended;
}

void clients_stop(struct clients *clients)
{
    clients->stop = true;
    pthread_join(clients->thread, NULL);
}

const struct clients_counts *clients_counts(const struct clients *clients)
{
    return &clients->counts;
}

const struct creation *clients_creation(const struct clients *clients, size_t number)
{
    return number < clients->creation_count ? &clients->creations[number] : NULL;
}

bool clients_session(const struct clients *clients, unsigned user, struct fixture_session *ret_session)
{
    *ret_session = clients->sessions[user];
    return ret_session->token[0] != '\0' &&
           history_lost_ns(clients->plan.history, clients->session_times[user].asked_ns,
                           clients->session_times[user].answered_ns) == HISTORY_NEVER;
}

void clients_destroy(struct clients *clients)
{
    free(clients->creations);
    free(clients);
}

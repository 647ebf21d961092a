#include "endings.h"
#include "deadline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUBJECTS_MAX = 1024,
    PEOPLE_AT_WORK = 8,
    COMMANDS_ABOUT_PEOPLE = 1, /* at once */
    CHECK_WITHIN_MS = 3000,
    CHANGE_WITHIN_MS = 8000,
    NS_PER_MS = 1000000,
    WHICH_BYTES = 256,
};

/* Whose credentials are refused for a while, or for good. */
struct subject {
    bool is_person;
    struct fixture_user user; /* the person, or an owner of the account */
    struct fixture_key key;   /* of the account */
    struct fixture_session session;
    uint32_t number;         /* of the key, on the board */
    struct family family;    /* the person's keys */
    enum key_fate fate;      /* what goes with the person */
    bool is_ended, must_end; /* as told last; what the command under way, or the next one, is for */
    bool is_gone;            /* commands do not find the person any more */
    int64_t due_ns;          /* the next command */
    int64_t check_at_ns[CLUSTER_NODES];
    struct process command;    /* pid 0: none */
    bool is_asked;             /* a node was asked, and has not answered */
    bool is_between;           /* an attempt may have had its effect, and nobody was told */
    int64_t attempt_ns;        /* when the last one began */
    int64_t asked_ns, told_ns; /* of what was told last: when that attempt began, and the answer */
    bool by_command;           /* likewise */
    struct ending_times times;
};

struct endings {
    struct endings_plan plan;
    unsigned seed;
    struct subject subjects[SUBJECTS_MAX]; /* accounts, then people */
    size_t count, hired;                   /* those behind the hired wait for a place */
    struct fixture_key manager;            /* of the account that people belong to */
    struct kinship kinship;
    struct exchange *exchange;
    bool found;
    struct endings_counts counts;
};

static unsigned below(struct endings *endings, unsigned bound)
{
    return (unsigned)rand_r(&endings->seed) % bound;
}

/* A random time between hundredths of the unit. */
static int64_t span_ns(struct endings *endings, unsigned from, unsigned to)
{
    return (int64_t)(from * 1000 + below(endings, (to - from) * 1000)) * endings->plan.unit_ms * (NS_PER_MS / 100000);
}

static struct subject *add_subject(struct endings *endings, const char *account, enum role role)
{
    struct subject *subject = &endings->subjects[endings->count++];
    struct fixture *fixture = &endings->plan.cluster->fixture;
    char email[64];

    *subject = (struct subject){
        .must_end = true, .due_ns = HISTORY_NEVER, .times = {HISTORY_NEVER, HISTORY_NEVER, HISTORY_NEVER}};
    snprintf(email, sizeof email, "subject%zu@torture.test", endings->count);
    fixture_add_person(fixture, account, email, role, &subject->user);
    fixture_add_session(fixture, &subject->user, true, &subject->session);
    return subject;
}

/* Readers check the keys of all accounts. */
static void show(struct endings *endings, struct subject *subject)
{
    if (!endings->plan.board)
        return;
    subject->number = board_add(endings->plan.board, subject->key.id, subject->key.secret, SCOPE_ALL, HISTORY_NO_KEY);
    board_show_end(endings->plan.board, (size_t)(subject - endings->subjects), subject->number);
}

static void add_account(struct endings *endings)
{
    struct fixture *fixture = &endings->plan.cluster->fixture;
    char account[ID_TEXT_BYTES];

    fixture_add_account(fixture, account);
    struct subject *subject = add_subject(endings, account, ROLE_OWNER);
    fixture_add_key(fixture, account, KEY_API, MODE_LIVE, SCOPE_ALL, &subject->key);
    subject->due_ns = history_now_ns() + span_ns(endings, 50, 300);
    show(endings, subject);
}

static void add_person(struct endings *endings, const char *account)
{
    struct subject *subject = add_subject(endings, account, ROLE_DEVELOPER);
    const struct http_call call = {.method = "POST",
                                   .target = "/v1/console/api_keys",
                                   .cookie = subject->session.token,
                                   .csrf = subject->session.csrf,
                                   .json = "{\"name\":\"made\",\"mode\":\"live\",\"scopes\":[\"keys:manage\","
                                           "\"patients:read\"]}"};
    const struct deadline deadline = deadline_in(PATIENCE_MS);
    static struct http_answer answer;
    struct fixture_key key;
    int64_t asked_ns;
    int status;

    subject->is_person = true;
    subject->fate = below(endings, 3) > 0 ? KEYS_ALL : KEYS_MADE;
    family_begin(&subject->family, &endings->kinship);
    do { /* a busy disk may hold Redis up; a key that it made all the same is revoked by the node */
        asked_ns = history_now_ns();
        status = cluster_call(endings->plan.cluster, 0, &call, &answer);
    } while (status == 503 && deadline_left_ms(deadline) > 0);
    if (status != 201 || !http_answer_json(&answer, "id", key.id, sizeof key.id) ||
        !http_answer_json(&answer, "secret", key.secret, sizeof key.secret))
        test_give_up("%s cannot create a key: %s", subject->user.email, answer.body);
    family_add(&subject->family, &key, true, asked_ns, history_now_ns());
}

/* The next person comes to work; is removed some time later. */
static void hire(struct endings *endings)
{
    if (endings->hired == endings->count)
        return;
    struct subject *subject = &endings->subjects[endings->hired++];
    subject->due_ns = history_now_ns() + span_ns(endings, 100, 1200);
}

struct endings *endings_create(const struct endings_plan *plan)
{
    struct endings *endings = calloc(1, sizeof *endings);
    char account[ID_TEXT_BYTES];

    if (!endings || plan->accounts + plan->people > SUBJECTS_MAX)
        abort();
    endings->plan = *plan;
    endings->seed = plan->seed * 17 + 3;
    endings->kinship = (struct kinship){.cluster = plan->cluster,
                                        .history = plan->history,
                                        .board = plan->board,
                                        .board_place = plan->accounts,
                                        .seed = plan->seed * 19 + 11,
                                        .unit_ms = plan->unit_ms};
    fixture_open_store(&plan->cluster->fixture);
    for (unsigned i = 0; i < plan->accounts; i++)
        add_account(endings);
    endings->hired = endings->count;
    fixture_add_account(&plan->cluster->fixture, account);
    fixture_add_key(&plan->cluster->fixture, account, KEY_API, MODE_LIVE, SCOPE_ALL, &endings->manager);
    for (unsigned i = 0; i < plan->people; i++)
        add_person(endings, account);
    fixture_close_store(&plan->cluster->fixture);
    for (unsigned i = 0; i < PEOPLE_AT_WORK; i++)
        hire(endings);
    return endings;
}

/* Commands, and requests to nodes that do the same */

static void note_attempt(struct endings *endings, struct subject *subject)
{
    if (!subject->must_end && endings->plan.board)
        board_allow(endings->plan.board, subject->number);
    subject->is_between = true;
    subject->attempt_ns = history_now_ns();
    if (subject->is_person)
        family_removal_begins(&subject->family, subject->fate, subject->attempt_ns);
    if (subject->must_end && subject->times.tried_ns == HISTORY_NEVER)
        subject->times.tried_ns = history_now_ns();
    if (!subject->must_end && subject->times.returning_ns == HISTORY_NEVER)
        subject->times.returning_ns = history_now_ns();
}

static void begin_command(struct endings *endings, struct subject *subject)
{
    const struct fixture *fixture = &endings->plan.cluster->fixture;
    const char *const connection[] = {"--redis", fixture->redis.url, "--master-key-file", fixture->master_key_path};
    const char *const of_account[] = {"account", subject->must_end ? "suspend" : "resume", subject->user.account};
    const char *fate = subject->fate == KEYS_ALL ? "--revoke-keys" : "--revoke-made-keys";
    const char *const of_person[] = {"user", "remove", "--email", subject->user.email, fate, "--yes"};
    const char *argv[12] = {node_binary()};
    size_t words = subject->is_person ? 6 : 3;

    memcpy(argv + 1, subject->is_person ? of_person : of_account, words * sizeof *argv);
    memcpy(argv + 1 + words, connection, sizeof connection);
    note_attempt(endings, subject);
    process_start(&subject->command, fixture->folder, "ending", argv);
}

static void suspension_told(struct endings *endings, struct subject *subject, int64_t now_ns)
{
    endings->counts.suspended++;
    subject->times.returning_ns = HISTORY_NEVER;
    subject->must_end = false;
    subject->due_ns = now_ns + span_ns(endings, 50, 400);
    if (endings->plan.board)
        board_refuse(endings->plan.board, subject->number);
}

/* Some keys may have stayed: then a repetition, with a node, ends some of them. */
static void removal_told(struct endings *endings, struct subject *subject, int64_t now_ns)
{
    bool is_first = !subject->is_ended;

    endings->counts.removed += is_first;
    family_removal_told(&subject->family, subject->fate, subject->attempt_ns, now_ns);
    subject->is_gone = true;
    subject->due_ns = HISTORY_NEVER;
    if (subject->fate == KEYS_MADE && below(endings, 2) == 0) {
        subject->fate = KEYS_ALL;
        subject->due_ns = now_ns + span_ns(endings, 50, 400);
    }
    if (is_first)
        hire(endings);
}

static void end_told(struct endings *endings, struct subject *subject, int64_t now_ns, bool by_command)
{
    subject->is_between = false;
    subject->asked_ns = subject->attempt_ns;
    subject->told_ns = history_now_ns();
    subject->by_command = by_command;
    if (!subject->must_end) {
        endings->counts.resumed++;
        subject->is_ended = false;
        subject->must_end = true;
        subject->due_ns = now_ns + span_ns(endings, 20, 250);
        return;
    }
    subject->times.ended_ns = now_ns;
    (subject->is_person ? removal_told : suspension_told)(endings, subject, now_ns);
    subject->is_ended = true;
    /* The moment that the promise speaks of. */
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        subject->check_at_ns[node] = now_ns;
}

/* It may have had its effect all the same, and is repeated until it tells so. */
static void end_failed(struct endings *endings, struct subject *subject)
{
    endings->counts.failed++;
    subject->due_ns = history_now_ns() + span_ns(endings, 5, 50);
}

/* A command does not find the person: an earlier attempt had its effect. A node tells when it is whole. */
static void end_found(struct endings *endings, struct subject *subject)
{
    endings->counts.removed_before++;
    subject->is_gone = true;
    subject->due_ns = history_now_ns() + span_ns(endings, 0, 5);
}

static bool finds_nobody(const struct subject *subject)
{
    char what[128];

    snprintf(what, sizeof what, "no user has the email %s;", subject->user.email);
    return subject->is_person && file_contains(subject->command.err_path, what);
}

/* Whether one is under way. */
static bool look_at_command(struct endings *endings, struct subject *subject)
{
    if (subject->command.pid == 0 || !process_wait(&subject->command, 0))
        return subject->command.pid != 0 || subject->is_asked;
    cluster_other_ends(endings->plan.cluster);
    if (process_exit_code(&subject->command) == 0)
        end_told(endings, subject, history_now_ns(), true);
    else if (finds_nobody(subject))
        end_found(endings, subject);
    else
        end_failed(endings, subject);
    return false;
}

struct asking {
    struct endings *endings;
    struct subject *subject;
    unsigned node;
    enum ending_credential credential;
};

static bool send_asking(const struct asking *asking, const char *bytes, size_t len, unsigned timeout_ms,
                        exchange_done *done)
{
    struct asking *copy = malloc(sizeof *copy);

    if (!copy)
        abort();
    *copy = *asking;
    const struct exchange_request request = {
        .node = asking->node, .bytes = bytes, .len = len, .timeout_ms = timeout_ms, .done = done, .arg = copy};
    bool is_sent = exchange_send(asking->endings->exchange, &request);
    if (!is_sent)
        free(copy);
    return is_sent;
}

static void remove_done(void *arg, const struct exchange_answer *answer)
{
    struct asking asking = *(struct asking *)arg;

    free(arg);
    cluster_other_ends(asking.endings->plan.cluster);
    asking.subject->is_asked = false;
    if (answer->status == 200)
        end_told(asking.endings, asking.subject, answer->end_ns, false);
    else if (answer->status == 404)
        history_violation(asking.endings->plan.history, "nobody has ever been there", asking.subject->user.email);
    else
        end_failed(asking.endings, asking.subject);
}

static void begin_request(struct endings *endings, struct subject *subject)
{
    const struct asking asking = {.endings = endings, .subject = subject, .node = below(endings, CLUSTER_NODES)};
    char bytes[EXCHANGE_REQUEST_BYTES];
    int len = snprintf(bytes, sizeof bytes,
                       "DELETE /v1/team/%s?revoke_keys=%s HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n"
                       "\r\n",
                       subject->user.id, subject->fate == KEYS_ALL ? "all" : "made", endings->manager.secret);

    note_attempt(endings, subject);
    subject->is_asked = send_asking(&asking, bytes, (size_t)len, CHANGE_WITHIN_MS, remove_done);
    if (!subject->is_asked) {
        cluster_other_ends(endings->plan.cluster);
        end_failed(endings, subject);
    }
}

/* Checks */

const char *endings_verdict(const struct ending_times *times, enum ending_credential credential,
                            const struct exchange_answer *answer)
{
    bool is_suspended =
        credential == OF_ACCOUNT && answer->status == 403 && strstr(answer->body, "\"account_suspended\"");
    bool is_over = credential == SESSION_OF_PERSON && answer->status == 401;

    if (answer->status == 200)
        return answer->start_ns > times->ended_ns && answer->end_ns < times->returning_ns
                   ? "accepted after the end was told"
                   : NULL;
    if (!is_suspended && !is_over)
        return "an answer that can't be";
    return answer->end_ns < times->tried_ns ? "refused, and nobody ended it" : NULL;
}

static bool is_told_and_lost(const struct endings *endings, const struct subject *subject)
{
    return subject->told_ns &&
           history_lost_ns(endings->plan.history, subject->asked_ns, subject->told_ns) != HISTORY_NEVER;
}

/* A removal that was lost with the store ends no session any more: a command's is numbered by nobody, and of a node's
 * an operator has accepted that. The person's keys stay revoked. */
static bool has_lost_its_end(const struct endings *endings, const struct subject *subject)
{
    return subject->is_person && is_told_and_lost(endings, subject) &&
           (subject->by_command || history_last_accepted_ns(endings->plan.history) > subject->told_ns);
}

static void note_violation(const struct asking *asking, const struct exchange_answer *answer, const char *what)
{
    const struct subject *subject = asking->subject;
    char which[WHICH_BYTES];

    snprintf(which, sizeof which,
             "%s of %s at node %u: %d, asked %.3f ms after the end was told, answered in %.3f ms%s%s",
             asking->credential == SESSION_OF_PERSON ? "session" : "credential",
             subject->is_person ? subject->user.email : subject->user.account, asking->node, answer->status,
             (double)(answer->start_ns - subject->times.ended_ns) / NS_PER_MS,
             (double)(answer->end_ns - answer->start_ns) / NS_PER_MS,
             is_told_and_lost(asking->endings, subject) ? "; perhaps lost with the store" : "",
             subject->by_command ? "; ended by a command" : "");
    history_violation(asking->endings->plan.history, what, which);
    asking->endings->found = true;
}

static void check_done(void *arg, const struct exchange_answer *answer)
{
    struct asking asking = *(struct asking *)arg;
    struct endings_counts *counts = &asking.endings->counts;
    const char *what;

    free(arg);
    if (answer->status == 0 || answer->status == 503)
        return;
    counts->accepted += answer->status == 200;
    counts->refused += answer->status != 200;
    counts->checks +=
        answer->start_ns > asking.subject->times.ended_ns && answer->end_ns < asking.subject->times.returning_ns;
    what = endings_verdict(&asking.subject->times, asking.credential, answer);
    if (what && answer->status == 200 && asking.credential == SESSION_OF_PERSON &&
        has_lost_its_end(asking.endings, asking.subject)) {
        counts->back++;
        return;
    }
    if (what)
        note_violation(&asking, answer, what);
}

static void check(struct endings *endings, struct subject *subject, unsigned node)
{
    char bytes[EXCHANGE_REQUEST_BYTES];
    bool by_key = !subject->is_person && below(endings, 4) > 0;
    const struct asking asking = {.endings = endings,
                                  .subject = subject,
                                  .node = node,
                                  .credential = subject->is_person ? SESSION_OF_PERSON : OF_ACCOUNT};
    int len;

    if (by_key)
        len = snprintf(bytes, sizeof bytes,
                       "GET /v1/whoami HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n\r\n",
                       subject->key.secret);
    else
        len = snprintf(bytes, sizeof bytes,
                       "GET /v1/console/session HTTP/1.1\r\nHost: api.test\r\nCookie: __Host-session=%s\r\n\r\n",
                       subject->session.token);
    (void)send_asking(&asking, bytes, (size_t)len, CHECK_WITHIN_MS, check_done);
}

/* Now and then, so that caches hold it, and very often around the end. People who wait for a place, or have been gone
 * for long, are checked rarely, just so that a session does not end by itself. */
static int64_t next_check_ns(struct endings *endings, const struct subject *subject, int64_t now_ns)
{
    int64_t since_ns = subject->times.ended_ns == HISTORY_NEVER ? HISTORY_NEVER : now_ns - subject->times.ended_ns;
    bool is_waiting = subject >= endings->subjects + endings->hired;

    if (is_waiting || (subject->is_person && subject->is_ended && since_ns > span_ns(endings, 1000, 1001)))
        return now_ns + span_ns(endings, 2000, 6000);
    if (subject->is_ended && since_ns < span_ns(endings, 20, 21))
        return now_ns + span_ns(endings, 1, 3);
    return now_ns + (subject->command.pid || subject->is_asked ? span_ns(endings, 1, 12) : span_ns(endings, 5, 40));
}

static size_t people_under_way(const struct endings *endings)
{
    size_t count = 0;

    for (size_t i = 0; i < endings->count; i++)
        count += endings->subjects[i].is_person && endings->subjects[i].command.pid != 0;
    return count;
}

/* The command line waits until all leases have ended; a node, for the others' acknowledgements. */
static void begin_end(struct endings *endings, struct subject *subject)
{
    bool by_request = subject->is_person && (subject->is_gone || below(endings, 3) > 0);

    if (subject->is_person && !by_request && people_under_way(endings) >= COMMANDS_ABOUT_PEOPLE)
        return;
    if (!cluster_other_begins(endings->plan.cluster))
        return;
    if (by_request)
        begin_request(endings, subject);
    else
        begin_command(endings, subject);
}

bool endings_turn(struct endings *endings, struct exchange *exchange)
{
    endings->exchange = exchange;
    for (size_t i = 0; i < endings->count; i++) {
        struct subject *subject = &endings->subjects[i];
        int64_t now_ns = history_now_ns();

        if (!look_at_command(endings, subject) && subject->due_ns <= now_ns)
            begin_end(endings, subject);
        for (unsigned node = 0; node < CLUSTER_NODES; node++) {
            if (subject->check_at_ns[node] > now_ns)
                continue;
            check(endings, subject, node);
            subject->check_at_ns[node] = next_check_ns(endings, subject, now_ns);
        }
        if (subject->is_person && i < endings->hired)
            family_turn(&subject->family, exchange);
    }
    return !endings->found && !endings->kinship.found;
}

bool endings_wind_down(struct endings *endings)
{
    bool is_open = false;

    for (size_t i = 0; i < endings->count; i++)
        is_open |= look_at_command(endings, &endings->subjects[i]);
    return is_open;
}

static int ask(struct endings *endings, unsigned node, const struct http_call *call)
{
    static struct http_answer answer;

    return cluster_call(endings->plan.cluster, node, call, &answer);
}

void endings_check_whole(struct endings *endings)
{
    for (unsigned i = 0; i < endings->count * CLUSTER_NODES; i++) {
        const struct subject *subject = &endings->subjects[i / CLUSTER_NODES];
        const struct http_call by_session = {.target = "/v1/console/session", .cookie = subject->session.token};
        const struct http_call by_key = {.target = "/v1/whoami", .bearer = subject->key.secret};
        int ended = subject->is_person ? 401 : 403, wanted = subject->is_ended ? ended : 200;

        if ((subject->is_between && !(subject->is_person && subject->is_ended)) ||
            (!subject->is_ended && is_told_and_lost(endings, subject)))
            continue;
        if ((!has_lost_its_end(endings, subject) && ask(endings, i % CLUSTER_NODES, &by_session) != wanted) ||
            (!subject->is_person && ask(endings, i % CLUSTER_NODES, &by_key) != wanted))
            history_violation(endings->plan.history,
                              subject->is_ended ? "not refused in the end" : "refused in the end",
                              subject->is_person ? subject->user.email : subject->user.account);
    }
}

const struct endings_counts *endings_counts(struct endings *endings)
{
    endings->counts.kin_made = endings->kinship.made;
    endings->counts.kin_gone = endings->kinship.gone;
    return &endings->counts;
}

void endings_destroy(struct endings *endings)
{
    for (size_t i = 0; endings && i < endings->count; i++)
        process_kill(&endings->subjects[i].command);
    free(endings);
}

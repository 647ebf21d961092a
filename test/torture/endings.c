#include "endings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUBJECTS_MAX = 128,
    PEOPLE_AT_ONCE = 1,
    CHECK_WITHIN_MS = 3000,
    NS_PER_MS = 1000000,
    WHICH_BYTES = 256,
};

/* Whose credentials are refused for a while, or for good. */
struct subject {
    bool is_person;
    struct fixture_user user; /* of the account */
    struct fixture_key key;   /* of an account */
    struct fixture_session session;
    bool is_ended, must_end; /* as told last; what the command under way, or the next one, is for */
    int64_t due_ns;          /* the next command */
    int64_t check_at_ns[CLUSTER_NODES];
    struct process command; /* pid 0: none */
    int64_t begun_ns;       /* the command */
    struct ending_times times;
};

struct endings {
    struct endings_plan plan;
    unsigned seed;
    struct subject subjects[SUBJECTS_MAX];
    size_t count;
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

static struct subject *add_subject(struct endings *endings, const char *account)
{
    struct subject *subject = &endings->subjects[endings->count++];
    struct fixture *fixture = &endings->plan.cluster->fixture;
    char email[64];

    *subject = (struct subject){.must_end = true, .times = {HISTORY_NEVER, HISTORY_NEVER, HISTORY_NEVER}};
    snprintf(email, sizeof email, "subject%zu@torture.test", endings->count);
    fixture_add_person(fixture, account, email, ROLE_OWNER, &subject->user);
    fixture_add_session(fixture, &subject->user, false, &subject->session);
    return subject;
}

struct endings *endings_create(const struct endings_plan *plan)
{
    struct endings *endings = calloc(1, sizeof *endings);

    if (!endings || plan->accounts + plan->people > SUBJECTS_MAX)
        abort();
    endings->plan = *plan;
    endings->seed = plan->seed * 17 + 3;
    for (unsigned i = 0; i < plan->accounts; i++) {
        char account[ID_TEXT_BYTES];
        struct subject *subject;

        fixture_add_account(&plan->cluster->fixture, account);
        subject = add_subject(endings, account);
        fixture_add_key(&plan->cluster->fixture, account, KEY_API, MODE_LIVE, SCOPE_ALL, &subject->key);
        subject->due_ns = history_now_ns() + span_ns(endings, 50, 300);
    }
    for (unsigned i = 0; i < plan->people; i++) {
        struct subject *subject = add_subject(endings, plan->cluster->fixture.account);

        subject->is_person = true;
        subject->due_ns = history_now_ns() + span_ns(endings, 100, 1000) * (i + 1) / 2;
    }
    return endings;
}

/* Commands */

static void begin_command(struct endings *endings, struct subject *subject)
{
    const struct fixture *fixture = &endings->plan.cluster->fixture;
    const char *const connection[] = {"--redis", fixture->redis.url, "--master-key-file", fixture->master_key_path};
    const char *const of_account[] = {"account", subject->must_end ? "suspend" : "resume", subject->user.account};
    const char *const of_person[] = {"session", "end", "--user", subject->user.email};
    const char *argv[10] = {node_binary()};
    size_t words = subject->is_person ? 4 : 3;

    memcpy(argv + 1, subject->is_person ? of_person : of_account, words * sizeof *argv);
    memcpy(argv + 1 + words, connection, sizeof connection);
    subject->begun_ns = history_now_ns();
    if (subject->must_end && subject->times.tried_ns == HISTORY_NEVER)
        subject->times.tried_ns = subject->begun_ns;
    if (!subject->must_end && subject->times.returning_ns == HISTORY_NEVER)
        subject->times.returning_ns = subject->begun_ns;
    process_start(&subject->command, fixture->folder, "ending", argv);
}

static void command_succeeded(struct endings *endings, struct subject *subject, int64_t now_ns)
{
    subject->is_ended = subject->must_end;
    if (!subject->must_end) {
        endings->counts.resumed++;
        subject->must_end = true;
        subject->due_ns = now_ns + span_ns(endings, 20, 250);
        return;
    }
    endings->counts.suspended += !subject->is_person;
    endings->counts.ended += subject->is_person;
    subject->times.ended_ns = now_ns;
    subject->times.returning_ns = HISTORY_NEVER;
    subject->must_end = false;
    subject->due_ns = subject->is_person ? HISTORY_NEVER : now_ns + span_ns(endings, 50, 400);
    /* The moment that the promise speaks of. */
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        subject->check_at_ns[node] = now_ns;
}

/* A command that failed may have had its effect all the same. It is repeated until it tells so. */
static bool look_at_command(struct endings *endings, struct subject *subject)
{
    if (subject->command.pid == 0 || !process_wait(&subject->command, 0))
        return subject->command.pid != 0;
    atomic_fetch_sub(&endings->plan.cluster->others_open, 1);
    if (process_exit_code(&subject->command) == 0) {
        command_succeeded(endings, subject, history_now_ns());
    } else {
        endings->counts.failed++;
        subject->due_ns = history_now_ns() + span_ns(endings, 5, 50);
    }
    return false;
}

/* As in the clients: counted first, so that a fault that finds nothing open knows that nothing will be begun. */
static bool may_begin(struct cluster *cluster)
{
    atomic_fetch_add(&cluster->others_open, 1);
    if (!atomic_load(&cluster->only_revocations))
        return true;
    atomic_fetch_sub(&cluster->others_open, 1);
    return false;
}

/* Checks */

struct asking {
    struct endings *endings;
    struct subject *subject;
    unsigned node;
    bool by_key;
};

const char *endings_verdict(const struct ending_times *times, bool is_person, const struct exchange_answer *answer)
{
    bool is_suspended = !is_person && answer->status == 403 && strstr(answer->body, "\"account_suspended\"");
    bool is_over = is_person && answer->status == 401;

    if (answer->status == 200)
        return answer->start_ns > times->ended_ns && answer->end_ns < times->returning_ns
                   ? "accepted after the command had ended"
                   : NULL;
    if (!is_suspended && !is_over)
        return "an answer that can't be";
    return answer->end_ns < times->tried_ns ? "refused, and nobody ended it" : NULL;
}

static void note_violation(const struct asking *asking, const struct exchange_answer *answer, const char *what)
{
    const struct subject *subject = asking->subject;
    char which[WHICH_BYTES];

    snprintf(which, sizeof which, "%s of %s at node %u: %d, asked %.3f ms after the command's end, told within %.3f ms",
             asking->by_key ? "key" : "session", subject->is_person ? subject->user.email : subject->user.account,
             asking->node, answer->status, (double)(answer->start_ns - subject->times.ended_ns) / NS_PER_MS,
             (double)(answer->end_ns - answer->start_ns) / NS_PER_MS);
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
    what = endings_verdict(&asking.subject->times, asking.subject->is_person, answer);
    if (what)
        note_violation(&asking, answer, what);
}

static void check(struct endings *endings, struct exchange *exchange, struct subject *subject, unsigned node)
{
    struct asking *asking = malloc(sizeof *asking);
    char bytes[EXCHANGE_REQUEST_BYTES];
    bool by_key = !subject->is_person && below(endings, 4) > 0;
    int len;

    if (!asking)
        abort();
    *asking = (struct asking){endings, subject, node, by_key};
    if (by_key)
        len = snprintf(bytes, sizeof bytes,
                       "GET /v1/whoami HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n\r\n",
                       subject->key.secret);
    else
        len = snprintf(bytes, sizeof bytes,
                       "GET /v1/console/session HTTP/1.1\r\nHost: api.test\r\nCookie: __Host-session=%s\r\n\r\n",
                       subject->session.token);
    const struct exchange_request request = {.node = node,
                                             .bytes = bytes,
                                             .len = (size_t)len,
                                             .timeout_ms = CHECK_WITHIN_MS,
                                             .done = check_done,
                                             .arg = asking};
    if (!exchange_send(exchange, &request))
        free(asking);
}

/* Now and then, so that caches hold it, and very often around the end. */
static int64_t next_check_ns(struct endings *endings, const struct subject *subject, int64_t now_ns)
{
    bool is_fresh = subject->is_ended && now_ns - subject->times.ended_ns < span_ns(endings, 20, 21);

    if (is_fresh)
        return now_ns + span_ns(endings, 1, 3);
    return now_ns + (subject->command.pid ? span_ns(endings, 1, 12) : span_ns(endings, 5, 40));
}

static size_t people_under_way(const struct endings *endings)
{
    size_t count = 0;

    for (size_t i = 0; i < endings->count; i++)
        count += endings->subjects[i].is_person && endings->subjects[i].command.pid != 0;
    return count;
}

bool endings_turn(struct endings *endings, struct exchange *exchange)
{
    for (size_t i = 0; i < endings->count; i++) {
        struct subject *subject = &endings->subjects[i];
        int64_t now_ns = history_now_ns();
        bool is_due = !look_at_command(endings, subject) && subject->due_ns <= now_ns;

        if (is_due && (!subject->is_person || people_under_way(endings) < PEOPLE_AT_ONCE) &&
            may_begin(endings->plan.cluster))
            begin_command(endings, subject);
        for (unsigned node = 0; node < CLUSTER_NODES; node++) {
            if (subject->check_at_ns[node] > now_ns)
                continue;
            check(endings, exchange, subject, node);
            subject->check_at_ns[node] = next_check_ns(endings, subject, now_ns);
        }
    }
    return !endings->found;
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
        bool is_between = subject->times.tried_ns != HISTORY_NEVER && subject->is_ended != !subject->must_end;
        int ended = subject->is_person ? 401 : 403, wanted = subject->is_ended ? ended : 200;

        if (is_between) /* its last command did not tell what became of it */
            continue;
        if (ask(endings, i % CLUSTER_NODES, &by_session) != wanted ||
            (!subject->is_person && ask(endings, i % CLUSTER_NODES, &by_key) != wanted))
            history_violation(endings->plan.history,
                              subject->is_ended ? "not refused in the end" : "refused in the end",
                              subject->is_person ? subject->user.email : subject->user.account);
    }
}

const struct endings_counts *endings_counts(const struct endings *endings)
{
    return &endings->counts;
}

void endings_destroy(struct endings *endings)
{
    for (size_t i = 0; endings && i < endings->count; i++)
        process_kill(&endings->subjects[i].command);
    free(endings);
}

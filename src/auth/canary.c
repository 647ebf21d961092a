#include "auth/canary.h"

#include "base/callback.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "core/canary_key.h"
#include "records/canary_store.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_MS = 1000,
    RETRY_MS = 1000,       /* while Redis does not answer, or the store is not ready */
    BEGIN_AGAIN_MS = 5000, /* if Redis takes no new run, because its memory is full */
    HELD_MS = 500,         /* a run is due, but another one is not over */
    POLL_MS = 50,          /* during a run, from the revocation on */
    USE_MAX_MS = 1000,     /* from the beginning of a run until its revocation: all nodes come within this time */
    USE_SHARE = 4,         /* of the interval, if that is short */
    ANSWERS_MS = 3000,     /* from the revocation's answer on; a node that has not answered by then is silent */
    PROCESS_BYTES = 8,
    NODE_BYTES = 256,
    MS_PER_S = 1000,
    NS_PER_US = 1000,
};

/* Of one partition. At any time there is one check, one visit or one beginning of a run under way, or the timer runs.
 */
struct canary_part {
    struct canary *canary;
    struct store *store;
    unsigned number;
    uv_timer_t timer;
    int64_t finished_ms; /* wall clock: when a run was last finished */

    /* The run that was last heard of, and its key. */
    int64_t run;
    struct id key;
    enum canary_phase phase;
    struct secret secret; /* empty unless this node takes part in it */
    struct key_check check;
    enum canary_finding found, reporting, reported;
    bool has_violated;

    /* The run that this node runs, as Redis said last. */
    int64_t running; /* 0: none */
    bool is_revoking, is_stepping;
    uint64_t revoking_since_ns, asking_since_ns;
    bool has_failed; /* the step under way ends the run unfinished */
};

struct canary {
    uv_loop_t *loop;
    struct keyring *keyring;
    struct key_checker *checker;
    struct canary_node node;
    char name[NODE_BYTES], process[2 * PROCESS_BYTES + 1];
    bool is_stopped;
    unsigned open; /* timers, and calls under way */
    struct callback ended;
    unsigned part_count;
    struct canary_part parts[];
};

static void on_timer(uv_timer_t *timer);
static void visit(struct canary_part *part);

static void part_ended(struct canary *canary)
{
    const struct callback ended = canary->ended;

    if (--canary->open > 0 || !ended.run)
        return;
    for (unsigned i = 0; i < canary->part_count; i++)
        secret_wipe(&canary->parts[i].secret);
    free(canary);
    callback_run(ended);
}

static void call_begins(struct canary_part *part)
{
    part->canary->open++;
}

/* True: go on. False: the canary has stopped; perhaps the part no longer exists. */
static bool call_ended(struct canary_part *part)
{
    bool is_stopped = part->canary->is_stopped;

    part_ended(part->canary);
    return !is_stopped;
}

static void wake_in(struct canary_part *part, int64_t ms)
{
    CHECK(uv_timer_start(&part->timer, on_timer, (uint64_t)ms, 0) == 0);
}

static int64_t use_ms(const struct canary *canary)
{
    int64_t share_ms = canary->node.interval_ms / USE_SHARE;

    return share_ms < USE_MAX_MS ? share_ms : USE_MAX_MS;
}

/* Nodes that wake together would all ask at the same moment. */
static int64_t jitter_ms(const struct canary *canary)
{
    return random_below((uint32_t)(use_ms(canary) / 2));
}

static void tell_last_run(const struct canary *canary)
{
    int64_t first_ms = canary->parts[0].finished_ms;

    for (unsigned i = 1; i < canary->part_count; i++)
        if (canary->parts[i].finished_ms < first_ms)
            first_ms = canary->parts[i].finished_ms;
    metric_set(METRIC_CANARY_LAST_RUN, first_ms / MS_PER_S);
}

/* Taking part */

static bool takes_part(const struct canary_part *part)
{
    return part->secret.text[0] != '\0';
}

/* With a master key that this node does not have, it cannot take part. */
static void join(struct canary_part *part, const struct canary_view *view)
{
    struct keyring *keyring = part->canary->keyring;

    for (size_t i = 0; i < keyring_generations(keyring); i++)
        if (text_equal(keyring_short_name(keyring, i), view->master_key) &&
            !canary_secret(keyring, i, view->nonce, &part->secret))
            secret_wipe(&part->secret);
}

static void leave_if_done(struct canary_part *part)
{
    bool is_running = part->phase == CANARY_USE || part->phase == CANARY_ASK;
    bool never_used = part->phase == CANARY_ASK && part->found == CANARY_NOTHING;

    if (!is_running || never_used || part->reported == CANARY_ASKED)
        secret_wipe(&part->secret);
}

/* A Redis that took over may not know the last run, and give its number to another one. */
static bool is_new_run(const struct canary_part *part, const struct canary_view *view)
{
    return view->run != part->run || !id_equal(&view->key, &part->key);
}

static void follow(struct canary_part *part, const struct canary_view *view)
{
    bool is_new = is_new_run(part, view);

    part->phase = view->phase;
    if (is_new) {
        secret_wipe(&part->secret);
        part->run = view->run;
        part->key = view->key;
        part->found = part->reported = CANARY_NOTHING;
        part->has_violated = false;
    }
    if (is_new && view->phase == CANARY_USE && view->revoke_in_ms > 0)
        join(part, view);
    leave_if_done(part);
}

static void note_violation(struct canary_part *part)
{
    part->found = CANARY_VIOLATED;
    part->has_violated = true;
    metric_add(METRIC_CANARY_VIOLATIONS, 1);
    LOG(LOG_ERROR, "canary: this node accepted a key after its revocation was answered",
        log_int("partition", part->number), log_int("run", part->run));
}

/* The check began after the phase was heard of. So in CANARY_ASK it began after the revocation was answered. */
static void note_verdict(struct canary_part *part, enum key_verdict verdict)
{
    bool is_asked = part->phase == CANARY_ASK, has_used = part->found >= CANARY_USED;

    if (verdict == KEY_ACCEPTED && is_asked && has_used && !part->has_violated)
        note_violation(part);
    else if (verdict == KEY_ACCEPTED && !is_asked && !has_used)
        part->found = CANARY_USED;
    else if ((verdict == KEY_REVOKED || verdict == KEY_INVALID) && is_asked && has_used)
        part->found = CANARY_ASKED;
    else if ((verdict == KEY_REVOKED || verdict == KEY_INVALID) && part->found == CANARY_USED)
        part->found = CANARY_REFUSED;
}

static void on_checked(void *arg, enum key_verdict verdict, UNUSED const struct key_principal *key)
{
    struct canary_part *part = arg;

    note_verdict(part, verdict);
    if (call_ended(part))
        visit(part);
}

/* Running */

static void on_step_done(void *arg, enum store_result result)
{
    struct canary_part *part = arg;

    part->is_stepping = false;
    if (result == STORE_REFUSED)
        part->running = 0;
    (void)call_ended(part);
}

static void on_ended(void *arg, enum store_result result)
{
    struct canary_part *part = arg;

    if (result == STORE_OK) {
        metric_add(part->has_failed ? METRIC_CANARY_UNFINISHED : METRIC_CANARY_FINISHED, 1);
        part->running = 0;
    }
    on_step_done(part, result);
}

/* why: NULL if it was finished. If Redis does not take this, the next visit tries again. */
static void end_run(struct canary_part *part, const char *why)
{
    part->is_stepping = true;
    part->has_failed = why;
    if (why)
        LOG(LOG_WARN, "canary: a run could not be finished", log_int("partition", part->number), log_str("why", why));
    call_begins(part);
    canary_store_end(part->store, &part->canary->node, part->running, why, on_ended, part);
}

static void ask_nodes(struct canary_part *part, uint64_t took_ns)
{
    histogram_observe(HISTOGRAM_CANARY, took_ns);
    part->is_stepping = true;
    part->asking_since_ns = clock_boot_ns();
    call_begins(part);
    canary_store_ask(part->store, &part->canary->node, part->running, (int64_t)(took_ns / NS_PER_US), on_step_done,
                     part);
}

static void on_revoked(void *arg, enum store_result result)
{
    struct canary_part *part = arg;
    uint64_t took_ns = clock_boot_ns() - part->revoking_since_ns;

    part->is_revoking = false;
    if (!part->canary->is_stopped && part->running) {
        if (result == STORE_OK)
            ask_nodes(part, took_ns);
        else
            end_run(part, result == STORE_NOT_FOUND ? "Redis has lost its key" : "its revocation was not answered");
    }
    (void)call_ended(part);
}

static void revoke_key(struct canary_part *part, const struct id *key)
{
    part->is_revoking = true;
    part->revoking_since_ns = clock_boot_ns();
    call_begins(part);
    canary_store_revoke(part->store, key, on_revoked, part);
}

static bool has_asked_enough(const struct canary_part *part, const struct canary_view *view)
{
    return view->answered >= view->used ||
           clock_boot_ns() - part->asking_since_ns >= (uint64_t)ANSWERS_MS * CLOCK_NS_PER_MS;
}

/* Goes on with the run that this node runs, even if it does not know so yet, because the reply to its beginning was
 * lost. Otherwise that run would last as long as the node asks. */
static void drive(struct canary_part *part, const struct canary_view *view)
{
    part->running = view->is_runner ? view->run : 0;
    if (part->is_revoking || part->is_stepping || part->running == 0)
        return;
    if (view->phase == CANARY_USE && view->revoke_in_ms == 0 && view->used == 0)
        end_run(part, "no node could use its key");
    else if (view->phase == CANARY_USE && view->revoke_in_ms == 0)
        revoke_key(part, &view->key);
    else if (view->phase == CANARY_ASK && has_asked_enough(part, view))
        end_run(part, NULL);
}

static void on_begun(void *arg, enum store_result result, bool has_abandoned)
{
    struct canary_part *part = arg;

    if (has_abandoned) {
        metric_add(METRIC_CANARY_UNFINISHED, 1);
        LOG(LOG_WARN, "canary: a run could not be finished", log_int("partition", part->number),
            log_str("why", "the node that ran it stopped"));
    }
    if (!call_ended(part))
        return;
    if (result == STORE_OK)
        visit(part);
    else
        wake_in(part, result == STORE_REFUSED ? POLL_MS : BEGIN_AGAIN_MS);
}

/* This node derives the secret once more when it hears of the run, like every other node. */
static void begin_run(struct canary_part *part)
{
    struct canary *canary = part->canary;
    uint8_t digest[KEY_DIGEST_BYTES];
    char nonce[CANARY_NONCE_CHARS + 1];
    struct secret secret;
    struct canary_key key;

    canary_draw(canary->keyring, (uint8_t)part->number, nonce, &secret, digest);
    key = (struct canary_key){.id = id_mint(ID_KEY, clock_wall_ms()),
                              .nonce = text_of(nonce),
                              .secret = secret_text(&secret),
                              .digest = digest,
                              .revoke_in_ms = use_ms(canary)};
    call_begins(part);
    canary_store_begin(part->store, &canary->node, &key, on_begun, part);
    secret_wipe(&secret);
}

/* Visits */

static int64_t next_visit_ms(const struct canary_part *part, const struct canary_view *view, bool has_changed)
{
    const struct canary *canary = part->canary;

    if (takes_part(part) && has_changed)
        return 0;
    if (takes_part(part) && part->phase == CANARY_USE && part->reported == CANARY_USED && view->revoke_in_ms > 0)
        return view->revoke_in_ms;
    if (takes_part(part) || part->running)
        return POLL_MS;
    if (view->due_in_ms == 0)
        return HELD_MS;
    return view->due_in_ms + jitter_ms(canary);
}

static void on_visited(void *arg, enum store_result result, const struct canary_view *view)
{
    struct canary_part *part = arg;

    if (!call_ended(part))
        return;
    if (result != STORE_OK) {
        wake_in(part, RETRY_MS);
        return;
    }
    bool has_changed = is_new_run(part, view) || view->phase != part->phase;

    part->reported = part->reporting;
    if (view->since_finished_ms >= 0)
        part->finished_ms = clock_wall_ms() - view->since_finished_ms;
    tell_last_run(part->canary);
    follow(part, view);
    drive(part, view);
    if (view->may_begin && !part->is_revoking && !part->is_stepping)
        begin_run(part);
    else
        wake_in(part, next_visit_ms(part, view, has_changed));
}

static void visit(struct canary_part *part)
{
    part->reporting = part->found;
    call_begins(part);
    canary_store_visit(part->store, &part->canary->node, part->run,
                       part->found == part->reported ? CANARY_NOTHING : part->found, on_visited, part);
}

/* A violation is reported before anything else is found. */
static void on_timer(uv_timer_t *timer)
{
    struct canary_part *part = timer->data;

    if (store_is_empty(part->store) || !store_is_ready(part->store)) {
        wake_in(part, RETRY_MS);
    } else if (!takes_part(part) || (part->found == CANARY_VIOLATED && part->reported != CANARY_VIOLATED)) {
        visit(part);
    } else {
        call_begins(part);
        key_check_begin(part->canary->checker, &part->check, secret_text(&part->secret), on_checked, part);
    }
}

/* Life */

static void name_node(struct canary *canary, struct text name)
{
    REQUIRE(name.len < sizeof canary->name);
    memcpy(canary->name, name.ptr, name.len);
    random_hex(canary->process, sizeof canary->process);
    canary->node.name = (struct text){canary->name, name.len};
    canary->node.process = text_of(canary->process);
}

struct canary *canary_create(uv_loop_t *loop, const struct canary_settings *settings, struct keyring *keyring,
                             const struct partitions *partitions, struct key_checker *checker)
{
    unsigned count = partitions_count(partitions);
    struct canary *canary = mem_alloc(sizeof *canary + count * sizeof *canary->parts);

    REQUIRE(settings->interval_ms >= CANARY_INTERVAL_MIN_MS);
    canary->loop = loop;
    canary->keyring = keyring;
    canary->checker = checker;
    canary->node.interval_ms = settings->interval_ms;
    name_node(canary, settings->node);
    canary->part_count = canary->open = count;
    for (unsigned i = 0; i < count; i++) {
        struct canary_part *part = &canary->parts[i];

        *part = (struct canary_part){.canary = canary, .store = partitions_at(partitions, i), .number = i};
        part->finished_ms = clock_wall_ms();
        CHECK(uv_timer_init(loop, &part->timer) == 0);
        part->timer.data = part;
        wake_in(part, FIRST_MS + jitter_ms(canary));
    }
    metric_set(METRIC_CANARY_INTERVAL, settings->interval_ms / MS_PER_S);
    tell_last_run(canary);
    return canary;
}

static void on_left(void *arg, UNUSED enum store_result result, UNUSED const struct canary_view *view)
{
    (void)call_ended(arg);
}

void canary_stop(struct canary *canary)
{
    canary->is_stopped = true;
    for (unsigned i = 0; i < canary->part_count; i++) {
        struct canary_part *part = &canary->parts[i];

        CHECK(uv_timer_stop(&part->timer) == 0);
        if (store_is_empty(part->store) || !store_is_ready(part->store))
            continue;
        call_begins(part);
        canary_store_visit(part->store, &canary->node, part->run, CANARY_LEFT, on_left, part);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_ended(((struct canary_part *)handle->data)->canary);
}

void canary_close(struct canary *canary, void (*ended)(void *arg), void *arg)
{
    canary->ended = (struct callback){ended, arg};
    for (unsigned i = 0; i < canary->part_count; i++)
        uv_close((uv_handle_t *)&canary->parts[i].timer, on_timer_closed);
}

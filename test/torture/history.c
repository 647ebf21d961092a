#include "history.h"

#include <pthread.h>
#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    NS_PER_MS = 1000000,
    FAULTS_MAX = 1 << 16,
    LOSSES_MAX = 1 << 12,
    FAULT_TEXT_BYTES = 80,
    EVENTS_FIRST = 1 << 16,
    SHOWN_MAX = 3,         /* violations shown with all that is known */
    NAMED_MAX = 30,        /* violations shown at all */
    EVENTS_SHOWN_MAX = 250 /* of one key */
};

struct history_key {
    char id[HISTORY_ID_BYTES];
    char secret[HISTORY_SECRET_BYTES];
    unsigned account;
    struct key_times times;
};

struct fault {
    int64_t start_ns, end_ns;
    char text[FAULT_TEXT_BYTES];
};

struct loss {
    int64_t from_ns, struck_ns, to_ns;
};

struct history {
    int64_t began_ns;
    size_t key_count, event_count, events_room;
    struct history_key *keys;
    struct event *events;
    struct hsearch_data by_id;
    size_t violations;
    int64_t first_violation_ns;

    pthread_mutex_t lock; /* of the faults and losses */
    size_t fault_count, loss_count;
    struct fault *faults;
    struct loss losses[LOSSES_MAX];
    int64_t accepted_ns;
};

static const char *const KIND_NAMES[EVENT_KINDS] = {"create",    "check",    "route",   "revoke",  "command",
                                                    "successor", "schedule", "replace", "may end", "table"};
/* A key whose revocation is scheduled may be refused so much earlier. */
static const int64_t EARLY_NS = INT64_C(200) * NS_PER_MS + HISTORY_ROUNDED_NS;
/* An overlap is counted from the latest that the store's time may be. */
static const int64_t REPLACED_LATE_NS = INT64_C(1000) * NS_PER_MS;
static const char *const CODE_NAMES[] = {"", " api_key_revoked", " already_replaced", " (another code)"};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

int64_t history_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

struct history *history_create(void)
{
    struct history *history = must(calloc(1, sizeof *history));

    history->began_ns = history_now_ns();
    history->first_violation_ns = HISTORY_NEVER;
    history->keys = must(calloc(HISTORY_KEYS_MAX, sizeof *history->keys));
    history->faults = must(calloc(FAULTS_MAX, sizeof *history->faults));
    history->events_room = EVENTS_FIRST;
    history->events = must(malloc(history->events_room * sizeof *history->events));
    pthread_mutex_init(&history->lock, NULL);
    if (!hcreate_r(HISTORY_KEYS_MAX * 2, &history->by_id))
        abort();
    return history;
}

void history_destroy(struct history *history)
{
    hdestroy_r(&history->by_id);
    pthread_mutex_destroy(&history->lock);
    free(history->events);
    free(history->faults);
    free(history->keys);
    free(history);
}

/* Verdicts */

enum event_code history_code(int status, const char *body)
{
    if (status < 400 || status == 503)
        return CODE_NONE;
    if (strstr(body, "\"already_replaced\""))
        return CODE_REPLACED;
    return strstr(body, "\"api_key_revoked\"") ? CODE_REVOKED : CODE_OTHER;
}

static const char *verdict_on_use(const struct key_times *times, const struct event *event, unsigned accepted)
{
    if (event->status == accepted)
        return event->start_ns > times->revoked_ns ? "accepted after its revocation was answered" : NULL;
    if (event->status != 401)
        return "an answer that can't be";
    if (event->code != CODE_REVOKED)
        return event->end_ns < times->lost_ns ? "an acknowledged key is not known" : NULL;
    return event->end_ns < times->revoke_tried_ns ? "told to be revoked, and nobody revoked it" : NULL;
}

static const char *verdict_on_schedule(const struct key_times *times, const struct event *event, unsigned done)
{
    if (event->status == done)
        return event->start_ns > times->revoked_ns ? "changed after its revocation was answered" : NULL;
    if (event->status == 404)
        return event->end_ns < times->lost_ns ? "an acknowledged key is not found" : NULL;
    if (event->status == 409 && event->code == CODE_REPLACED)
        return NULL;
    if (event->status == 409)
        return event->end_ns < times->revoke_tried_ns ? "told to be revoked, and nobody revoked it" : NULL;
    return "an answer that can't be";
}

const char *history_verdict(const struct key_times *times, const struct event *event)
{
    if (event->status == 0 || event->status == 503)
        return NULL;
    switch (event->kind) {
    case EVENT_CREATE:
        return event->status == 201 ? NULL : "an answer that can't be";
    case EVENT_REVOKE:
    case EVENT_COMMAND:
        if (event->status == 404)
            return event->end_ns < times->lost_ns ? "an acknowledged key is not found" : NULL;
        return event->status == 200 ? NULL : "an answer that can't be";
    case EVENT_SCHEDULE:
        return verdict_on_schedule(times, event, 200);
    case EVENT_REPLACE:
        return verdict_on_schedule(times, event, 201);
    case EVENT_SUCCESSOR:
        return verdict_on_use(times, event, 201);
    default:
        return verdict_on_use(times, event, 200);
    }
}

static int64_t later_ns(const struct event *event)
{
    return (int64_t)event->later_ms * NS_PER_MS;
}

static int64_t later_of(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

bool history_ends_key(const struct event *event, int64_t *ret_from_ns)
{
    bool is_scheduled = event->kind == EVENT_SCHEDULE || event->kind == EVENT_REPLACE;

    *ret_from_ns = event->start_ns;
    if (is_scheduled)
        *ret_from_ns = later_of(event->start_ns, event->start_ns + later_ns(event) - EARLY_NS);
    return is_scheduled || event->kind == EVENT_REVOKE || event->kind == EVENT_COMMAND || event->kind == EVENT_MAY_END;
}

/* When nobody may accept the key any more; HISTORY_NEVER: the event does not say so. */
static int64_t end_of_key(const struct event *event)
{
    switch (event->kind) {
    case EVENT_REVOKE:
    case EVENT_COMMAND:
        return event->status == 200 ? event->end_ns : HISTORY_NEVER;
    case EVENT_SCHEDULE:
        return event->status == 200 ? later_of(event->end_ns, event->start_ns + later_ns(event)) : HISTORY_NEVER;
    case EVENT_REPLACE:
        return event->status == 201 ? event->end_ns + later_ns(event) + REPLACED_LATE_NS : HISTORY_NEVER;
    default:
        return HISTORY_NEVER;
    }
}

/* What the event tells about its key's times. */
static void times_learn(struct key_times *times, const struct event *event)
{
    int64_t end_ns = end_of_key(event), from_ns;

    if (event->kind == EVENT_CREATE) {
        times->asked_ns = event->start_ns;
        times->created_ns = event->end_ns;
    }
    if (history_ends_key(event, &from_ns) && from_ns < times->revoke_tried_ns)
        times->revoke_tried_ns = from_ns;
    if (end_ns < times->revoked_ns)
        times->revoked_ns = end_ns;
}

static const struct key_times NOTHING_KNOWN = {HISTORY_NEVER, HISTORY_NEVER, HISTORY_NEVER, HISTORY_NEVER,
                                               HISTORY_NEVER};

static const char *judge(struct history *history, const struct key_times *times, const struct event *event)
{
    struct key_times known = *times;
    bool is_unknown = event->status == 404 || (event->status == 401 && event->code == CODE_OTHER);

    if (is_unknown && known.created_ns != HISTORY_NEVER)
        known.lost_ns = history_lost_ns(history, known.asked_ns, known.created_ns);
    return history_verdict(&known, event);
}

/* Showing what is known */

static double at_ms(const struct history *history, int64_t ns)
{
    return (double)(ns - history->began_ns) / (double)NS_PER_MS;
}

static void event_print(const struct history *history, const struct event *event, const char *mark, FILE *out)
{
    fprintf(out, "%s%12.3f .. %12.3f ms  node %u  %-8s %u%s\n", mark, at_ms(history, event->start_ns),
            at_ms(history, event->end_ns), event->node, KIND_NAMES[event->kind], event->status,
            CODE_NAMES[event->code]);
}

static void faults_print(struct history *history, int64_t from_ns, int64_t to_ns)
{
    pthread_mutex_lock(&history->lock);
    for (size_t i = 0; i < history->fault_count; i++) {
        const struct fault *fault = &history->faults[i];
        if (fault->start_ns > to_ns || fault->end_ns < from_ns)
            continue;
        fprintf(stderr, "    %12.3f .. ", at_ms(history, fault->start_ns));
        if (fault->end_ns == HISTORY_NEVER)
            fprintf(stderr, "  not ended ms  %s\n", fault->text);
        else
            fprintf(stderr, "%12.3f ms  %s\n", at_ms(history, fault->end_ns), fault->text);
    }
    pthread_mutex_unlock(&history->lock);
}

/* The first event and the last ones of a key: what lies between are checks like the others. */
static void key_print(const struct history *history, const struct event *bad)
{
    size_t total = 0, seen = 0;

    for (size_t i = 0; i < history->event_count; i++)
        total += history->events[i].key == bad->key;
    for (size_t i = 0; i < history->event_count; i++) {
        const struct event *event = &history->events[i];
        if (event->key != bad->key)
            continue;
        bool is_check = event->kind == EVENT_CHECK || event->kind == EVENT_ROUTE;
        if (!is_check || seen + EVENTS_SHOWN_MAX >= total)
            event_print(history, event, event == bad ? " !! " : "    ", stderr);
        seen++;
    }
}

static void violation_count(struct history *history)
{
    if (history->violations++ == 0)
        history->first_violation_ns = history_now_ns();
}

/* event: the one in the history, so that it can be told from the others. */
static void violation_show(struct history *history, const struct event *event, const char *what)
{
    const struct key_times *times = &history->keys[event->key].times;
    int64_t from_ns = times->created_ns < event->start_ns ? times->created_ns : event->start_ns;

    if (history->violations > NAMED_MAX)
        return;
    fprintf(stderr, "VIOLATION: %s: %s\n", what, history->keys[event->key].id);
    event_print(history, event, " !! ", stderr);
    if (history->violations > SHOWN_MAX)
        return;
    fprintf(stderr, "  faults since the key was made, and shortly before:\n");
    faults_print(history, from_ns - INT64_C(3000) * NS_PER_MS, event->end_ns);
    fprintf(stderr, "  the key's events (its checks: the last %d), in the order of their ends:\n", EVENTS_SHOWN_MAX);
    key_print(history, event);
}

void history_violation(struct history *history, const char *what, const char *which)
{
    violation_count(history);
    if (history->violations <= NAMED_MAX)
        fprintf(stderr, "VIOLATION: %s: %s\n", what, which);
}

/* Writing */

uint32_t history_add_key(struct history *history, unsigned account, const char *id, const char *secret)
{
    if (history->key_count == HISTORY_KEYS_MAX)
        return HISTORY_NO_KEY;

    struct history_key *key = &history->keys[history->key_count];
    ENTRY *found;
    snprintf(key->id, sizeof key->id, "%s", id);
    snprintf(key->secret, sizeof key->secret, "%s", secret);
    key->account = account;
    key->times = NOTHING_KNOWN;
    hsearch_r((ENTRY){.key = key->id, .data = key}, ENTER, &found, &history->by_id);
    return (uint32_t)history->key_count++;
}

void history_revoke_begins(struct history *history, uint32_t key, int64_t from_ns)
{
    if (from_ns < history->keys[key].times.revoke_tried_ns)
        history->keys[key].times.revoke_tried_ns = from_ns;
}

bool history_is_full(const struct history *history)
{
    return history->event_count == HISTORY_EVENTS_MAX || history->key_count == HISTORY_KEYS_MAX;
}

bool history_add(struct history *history, const struct event *event)
{
    bool has_key = event->key != HISTORY_NO_KEY;

    if (history->event_count == HISTORY_EVENTS_MAX)
        return true;
    if (history->event_count == history->events_room) {
        history->events_room *= 2;
        history->events = must(realloc(history->events, history->events_room * sizeof *history->events));
    }
    struct event *stored = &history->events[history->event_count++];
    *stored = *event;
    if (has_key)
        times_learn(&history->keys[event->key].times, event);
    const char *what = judge(history, has_key ? &history->keys[event->key].times : &NOTHING_KNOWN, event);
    if (!what)
        return true;
    violation_count(history);
    if (has_key)
        violation_show(history, stored, what);
    else if (history->violations <= NAMED_MAX)
        fprintf(stderr, "VIOLATION: %s: %s %u\n", what, KIND_NAMES[event->kind], event->status);
    return false;
}

/* Reading */

size_t history_count(const struct history *history)
{
    return history->key_count;
}

const char *history_id(const struct history *history, uint32_t key)
{
    return history->keys[key].id;
}

const char *history_secret(const struct history *history, uint32_t key)
{
    return history->keys[key].secret;
}

unsigned history_account(const struct history *history, uint32_t key)
{
    return history->keys[key].account;
}

const struct key_times *history_times(const struct history *history, uint32_t key)
{
    return &history->keys[key].times;
}

uint32_t history_find(struct history *history, const char *id)
{
    char key[HISTORY_ID_BYTES];
    ENTRY *found = NULL;

    snprintf(key, sizeof key, "%s", id);
    hsearch_r((ENTRY){.key = key}, FIND, &found, &history->by_id);
    return found ? (uint32_t)((struct history_key *)found->data - history->keys) : HISTORY_NO_KEY;
}

size_t history_violations(const struct history *history)
{
    return history->violations;
}

int64_t history_first_violation_ms(const struct history *history)
{
    return (history->first_violation_ns - history->began_ns) / NS_PER_MS;
}

size_t history_judge(struct history *history, size_t *ret_checked)
{
    struct key_times *times = must(malloc((history->key_count + 1) * sizeof *times));
    size_t violations = 0;

    *ret_checked = 0;
    for (size_t i = 0; i <= history->key_count; i++)
        times[i] = NOTHING_KNOWN;
    for (size_t i = 0; i < history->event_count; i++) {
        if (history->events[i].key != HISTORY_NO_KEY)
            times_learn(&times[history->events[i].key], &history->events[i]);
    }
    for (size_t i = 0; i < history->event_count; i++) {
        const struct event *event = &history->events[i];
        const struct key_times *known = &times[event->key == HISTORY_NO_KEY ? history->key_count : event->key];
        const char *what = judge(history, known, event);
        bool is_check = event->kind == EVENT_CHECK || event->kind == EVENT_ROUTE;

        *ret_checked += is_check && event->status != 0 && event->start_ns > known->revoked_ns;
        if (what && violations++ < SHOWN_MAX) {
            fprintf(stderr, "in the whole history: %s\n", what);
            event_print(history, event, " !! ", stderr);
        }
    }
    free(times);
    return violations;
}

/* Faults */

size_t history_fault_begin(struct history *history, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&history->lock);
    size_t number = history->fault_count < FAULTS_MAX - 1 ? history->fault_count++ : FAULTS_MAX - 1;
    struct fault *fault = &history->faults[number];
    fault->start_ns = history_now_ns();
    fault->end_ns = HISTORY_NEVER;
    va_start(args, format);
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
    pthread_mutex_unlock(&history->lock);
    return number;
}

void history_fault_end(struct history *history, size_t fault)
{
    pthread_mutex_lock(&history->lock);
    history->faults[fault].end_ns = history_now_ns();
    pthread_mutex_unlock(&history->lock);
}

size_t history_fault_count(const struct history *history)
{
    return history->fault_count;
}

/* Losses */

size_t history_loss_begins(struct history *history, int64_t at_ns)
{
    pthread_mutex_lock(&history->lock);
    size_t number = history->loss_count++;
    if (number == LOSSES_MAX)
        abort();
    history->losses[number] = (struct loss){at_ns, HISTORY_NEVER, HISTORY_NEVER};
    pthread_mutex_unlock(&history->lock);
    return number;
}

void history_loss_strikes(struct history *history, size_t loss, int64_t at_ns)
{
    pthread_mutex_lock(&history->lock);
    history->losses[loss].struck_ns = at_ns;
    pthread_mutex_unlock(&history->lock);
}

void history_loss_ends(struct history *history, size_t loss, int64_t at_ns)
{
    pthread_mutex_lock(&history->lock);
    history->losses[loss].to_ns = at_ns;
    pthread_mutex_unlock(&history->lock);
}

int64_t history_lost_ns(struct history *history, int64_t asked_ns, int64_t answered_ns)
{
    int64_t lost_ns = HISTORY_NEVER;

    pthread_mutex_lock(&history->lock);
    for (size_t i = 0; i < history->loss_count; i++) {
        const struct loss *loss = &history->losses[i];

        if (answered_ns >= loss->from_ns && asked_ns <= loss->to_ns && loss->struck_ns < lost_ns)
            lost_ns = loss->struck_ns;
    }
    pthread_mutex_unlock(&history->lock);
    return lost_ns;
}

void history_loss_accepted(struct history *history, int64_t at_ns)
{
    pthread_mutex_lock(&history->lock);
    history->accepted_ns = at_ns;
    pthread_mutex_unlock(&history->lock);
}

int64_t history_last_accepted_ns(struct history *history)
{
    pthread_mutex_lock(&history->lock);
    int64_t at_ns = history->accepted_ns;
    pthread_mutex_unlock(&history->lock);
    return at_ns;
}

void history_write(struct history *history, FILE *out)
{
    fprintf(out, "# ms from\tms to\tnode\tkind\tstatus\tkey\n");
    for (size_t i = 0; i < history->event_count; i++) {
        const struct event *event = &history->events[i];
        fprintf(out, "%.3f\t%.3f\t%u\t%s\t%u%s\t%s\n", at_ms(history, event->start_ns), at_ms(history, event->end_ns),
                event->node, KIND_NAMES[event->kind], event->status, CODE_NAMES[event->code],
                event->key == HISTORY_NO_KEY ? "-" : history->keys[event->key].id);
    }
    pthread_mutex_lock(&history->lock);
    for (size_t i = 0; i < history->fault_count; i++)
        fprintf(out, "%.3f\t%.3f\t-\tfault\t-\t%s\n", at_ms(history, history->faults[i].start_ns),
                at_ms(history, history->faults[i].end_ns), history->faults[i].text);
    pthread_mutex_unlock(&history->lock);
}

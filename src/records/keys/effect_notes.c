#include "effect_notes.h"

#include "engine/access.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "key_parts.h"
#include "engine/verb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_BYTES = 24,
    EACH_ARGS = 7,
    NOTES_TOGETHER = 256,
    PACE_MS = 500, /* so that fewer than one in a hundred revocations meets a note at Redis */
    /* While Redis does not reply: further ones are not kept. */
    NOTES_WAITING_MAX = 10000,
};

struct note {
    struct id id, account;
    char revoked[NUMBER_BYTES], registered[NUMBER_BYTES], waited_for[NUMBER_BYTES];
    char took[NUMBER_BYTES];
    uint64_t over_ns; /* when its barrier was over */
    char ago[NUMBER_BYTES];
};

struct effect_notes {
    struct store *store;
    uv_timer_t timer;
    struct note *waiting;
    size_t count, capacity;
    uint64_t may_send_ms; /* uv_now() */
    unsigned under_way;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void *notes_create(struct store *store)
{
    struct effect_notes *notes = mem_alloc(sizeof *notes);

    notes->store = store;
    CHECK(uv_timer_init(store_loop(store), &notes->timer) == 0);
    notes->timer.data = notes;
    return notes;
}

static void try_send(struct effect_notes *notes);

static void on_noted(void *arg, UNUSED enum store_result result, UNUSED const struct redis_reply *reply)
{
    struct effect_notes *notes = arg;

    notes->under_way--;
    try_send(notes);
}

/* Nobody may read that a key was refused before it was. So this is never more than has passed, if our clock runs up to
 * 10 % fast. */
static void put_ago(struct note *note, uint64_t now_ns)
{
    snprintf(note->ago, sizeof note->ago, "%" PRIu64, (now_ns - note->over_ns) / CLOCK_NS_PER_MS * 10 / 11);
}

static void send_notes(struct effect_notes *notes)
{
    struct text argv[NOTES_TOGETHER * EACH_ARGS];
    size_t sent = notes->count < NOTES_TOGETHER ? notes->count : NOTES_TOGETHER, argc = 0;
    uint64_t now_ns = clock_boot_ns();

    for (size_t i = 0; i < sent; i++) {
        struct note *note = &notes->waiting[i];

        put_ago(note, now_ns);
        argv[argc++] = id_text(&note->id);
        argv[argc++] = id_text(&note->account);
        argv[argc++] = text_of(note->revoked);
        argv[argc++] = text_of(note->took);
        argv[argc++] = text_of(note->ago);
        argv[argc++] = text_of(note->registered);
        argv[argc++] = text_of(note->waited_for);
    }
    notes->under_way++;
    store_call_script(notes->store, SCRIPT_effect_note, SCRIPT_LEAVES, argc, argv, on_noted, notes);
    notes->count -= sent;
    memmove(notes->waiting, notes->waiting + sent, notes->count * sizeof *notes->waiting);
}

static void on_timer(uv_timer_t *timer)
{
    try_send(timer->data);
}

static void try_send(struct effect_notes *notes)
{
    uint64_t now_ms = uv_now(store_loop(notes->store));

    if (notes->under_way > 0 || notes->count == 0)
        return;
    if (now_ms < notes->may_send_ms && notes->count < NOTES_TOGETHER) {
        CHECK(uv_timer_start(&notes->timer, on_timer, notes->may_send_ms - now_ms, 0) == 0);
        return;
    }
    notes->may_send_ms = now_ms + PACE_MS;
    send_notes(notes);
}

bool effect_notes_flush(struct store *store)
{
    struct effect_notes *notes = store_part(store, &EFFECT_NOTES);

    while (notes->count > 0)
        send_notes(notes);
    return notes->under_way > 0;
}

/* And this is never less than has passed, if it runs up to 10 % slow. */
static void put_took(struct note *note, bool is_again, const struct barrier_tally *tally)
{
    uint64_t took_ns = is_again && tally->wait_ns > tally->took_ns ? tally->wait_ns : tally->took_ns;

    snprintf(note->took, sizeof note->took, "%" PRIu64, took_ns / 9 * 10 / CLOCK_NS_PER_MS + 1);
}

static void add_note(struct effect_notes *notes, const struct key_ended *key, const struct barrier_tally *tally)
{
    struct note *note;

    if (notes->count == NOTES_WAITING_MAX)
        return;
    if (notes->count == notes->capacity) {
        notes->capacity = notes->capacity > 0 ? 2 * notes->capacity : NOTES_TOGETHER;
        notes->waiting = mem_resize(notes->waiting, notes->capacity * sizeof *notes->waiting);
    }
    note = &notes->waiting[notes->count++];
    note->id = *key->id;
    note->account = *key->account;
    put_took(note, key->is_again, tally);
    note->over_ns = clock_boot_ns();
    snprintf(note->revoked, sizeof note->revoked, "%" PRId64, key->revoked_ms);
    snprintf(note->registered, sizeof note->registered, "%u", tally->registered);
    snprintf(note->waited_for, sizeof note->waited_for, "%u", tally->waited_for);
}

void effect_notes_add(struct store *store, const struct key_ended *keys, size_t count,
                      const struct barrier_tally *tally)
{
    struct effect_notes *notes = store_part(store, &EFFECT_NOTES);

    for (size_t i = 0; i < count; i++)
        add_note(notes, &keys[i], tally);
    try_send(notes);
}

/* Closing */

static void on_timer_closed(uv_handle_t *handle)
{
    struct effect_notes *notes = handle->data;
    void (*closed)(void *arg) = notes->closed;
    void *arg = notes->closed_arg;

    CHECK(notes->under_way == 0);
    free(notes->waiting);
    free(notes);
    closed(arg);
}

static void notes_close(void *made, void (*closed)(void *arg), void *arg)
{
    struct effect_notes *notes = made;

    notes->closed = closed;
    notes->closed_arg = arg;
    uv_close((uv_handle_t *)&notes->timer, on_timer_closed);
}

const struct store_part EFFECT_NOTES = {.create = notes_create, .close = notes_close};

#include "key_revocation_note.h"

#include "access.h"
#include "base/check.h"
#include "base/mem.h"
#include "verb_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_BYTES = 24,
    EACH_ARGS = 5,
    NOTES_TOGETHER = 256,
    /* While Redis does not reply: further ones are not kept. */
    NOTES_WAITING_MAX = 10000,
};

struct note {
    struct id id, account;
    char revoked[NUMBER_BYTES], registered[NUMBER_BYTES], waited_for[NUMBER_BYTES];
};

struct key_notes {
    struct store *store;
    struct note *waiting;
    size_t count, capacity;
    bool is_under_way;
};

struct key_notes *key_notes_create(struct store *store)
{
    struct key_notes *notes = mem_alloc(sizeof *notes);

    notes->store = store;
    return notes;
}

void key_notes_destroy(struct key_notes *notes)
{
    CHECK(!notes->is_under_way);
    free(notes->waiting);
    free(notes);
}

static void send_notes(struct key_notes *notes);

static void on_noted(void *arg, UNUSED enum store_result result, UNUSED const struct redis_reply *reply)
{
    struct key_notes *notes = arg;

    notes->is_under_way = false;
    send_notes(notes);
}

/* The script's arguments are copied by the call. */
static void send_notes(struct key_notes *notes)
{
    struct text argv[NOTES_TOGETHER * EACH_ARGS];
    size_t sent = notes->count < NOTES_TOGETHER ? notes->count : NOTES_TOGETHER, argc = 0;

    if (notes->is_under_way || sent == 0)
        return;
    for (size_t i = 0; i < sent; i++) {
        const struct note *note = &notes->waiting[i];

        argv[argc++] = id_text(&note->id);
        argv[argc++] = id_text(&note->account);
        argv[argc++] = text_of(note->revoked);
        argv[argc++] = text_of(note->registered);
        argv[argc++] = text_of(note->waited_for);
    }
    notes->is_under_way = true;
    store_call_script(notes->store, SCRIPT_revocation_note, SCRIPT_LEAVES, argc, argv, on_noted, notes);
    notes->count -= sent;
    memmove(notes->waiting, notes->waiting + sent, notes->count * sizeof *notes->waiting);
}

static void add_note(struct key_notes *notes, const struct key_ended *key, const struct barrier_tally *tally)
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
    snprintf(note->revoked, sizeof note->revoked, "%" PRId64, key->revoked_ms);
    snprintf(note->registered, sizeof note->registered, "%u", tally->registered);
    snprintf(note->waited_for, sizeof note->waited_for, "%u", tally->waited_for);
}

void key_endings_note(struct store *store, const struct key_ended *keys, size_t count,
                      const struct barrier_tally *tally)
{
    struct key_notes *notes = store_key_notes(store);

    for (size_t i = 0; i < count; i++)
        add_note(notes, &keys[i], tally);
    send_notes(notes);
}

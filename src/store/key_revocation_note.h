/* Notes about how revocations took effect (revocation_note.lua), for whoever sees their barriers end. Nobody waits for
 * them: if one fails, whoever asks for a receipt runs a barrier again. So it is no change that a node promises to keep.
 */
#pragma once
#include "lease/barrier.h"
#include "store/key_revocation.h"

struct store;
struct key_notes;

struct key_notes *key_notes_create(struct store *store);
/* No script is under way any more. */
void key_notes_destroy(struct key_notes *notes);

/* The barrier of these revocations is over. The texts are copied. While a script of notes is under way, further ones
 * wait for its reply, and then leave together. */
struct key_ended {
    const struct id *id, *account;
    int64_t revoked_ms;
};
void key_endings_note(struct store *store, const struct key_ended *keys, size_t count,
                      const struct barrier_tally *tally);

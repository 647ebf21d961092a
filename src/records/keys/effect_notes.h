/* Notes about how revocations took effect (effect_note.lua), for whoever sees their barriers end. Nobody waits for
 * them: if one fails, whoever asks for a receipt runs a barrier again. So it is no change that a node promises to keep.
 */
#pragma once
#include "lease/barrier.h"
#include "records/revocation_effect.h"

struct store;

/* Sends what waits. Returns whether Redis has not replied to some: what is read with SCRIPT_LEAVES comes after them. */
bool effect_notes_flush(struct store *store);

/* The barrier of these revocations is over. id: of a key, or of an account that is suspended. The ids are copied. Notes
 * leave at most every 500 ms, together. */
struct key_ended {
    const struct id *id, *account;
    int64_t revoked_ms;
    bool is_again; /* it was revoked before: how long the barrier took then is not known */
};
void effect_notes_add(struct store *store, const struct key_ended *keys, size_t count,
                      const struct barrier_tally *tally);

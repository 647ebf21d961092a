/* Notes about how revocations took effect (revocation_note.lua), for whoever sees their barriers end. */
#pragma once
#include "lease/barrier.h"
#include "store/key_revocation.h"
#include "verb_internal.h"

/* The barrier of these revocations is over. Nobody waits for this: if it fails, whoever asks for a receipt runs a
 * barrier again. So the note is no change that a node promises to keep. */
struct key_ended {
    const struct id *id, *account;
    int64_t revoked_ms;
};
/* At most REVOKED_TOGETHER_MAX. */
void key_endings_note(struct store *store, const struct key_ended *keys, size_t count,
                      const struct barrier_tally *tally);

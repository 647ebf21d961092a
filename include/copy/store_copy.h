/* Copies a stopped store into an empty one with another number of partitions, or at another Redis: every record as it
 * is, with its time to live, into the partition of its account. Records are not opened, so this needs no master key:
 * MACs bind ids and digests, not places. Records that last minutes are left behind: enrolments under way, throttles,
 * windows of changes.
 *
 * From the first to the last step the target has a marker, and a schema that is newer than any: no node serves it. A
 * copy that was interrupted starts over. Right before the last step the source gets a marker of the same kind, which
 * says where the store has moved to: no node serves it beside the target. Copying back into it ends that. */
#pragma once
#include "engine/settings.h"
#include <uv.h>

enum {
    STORE_COPY_TROUBLE_BYTES = 512,
    STORE_COPY_SCHEMA = 1000000, /* of a store into which a copy is under way */
};

struct store_copy_counts {
    /* Compared between both sides after the copy. Events are those of accounts' trails. */
    uint64_t accounts, suspended, keys, users, events;
};

struct store_copied {
    struct store_copy_counts counts;
    uint64_t sessions, links, emails; /* copied */
    uint64_t aliases;                 /* records that lie elsewhere than their digest says */
    uint64_t
        left; /* records that belong to nothing: of a key or user that is gone, a claim to an email without a user */
    uint64_t unknown;       /* names of no known kind */
    char an_unknown[64];    /* one of them */
    bool was_finished_only; /* an earlier run had copied and compared everything */
    unsigned from, to;      /* partitions */
    const char *trouble;    /* a sentence; NULL: done */
    bool is_refusal;        /* nothing was written */
    bool lacks_last_step;   /* neither source nor target is served, or not all of them: it must be run again */
    bool is_whole;          /* the target is a store, whatever the trouble is */
};

/* Copies all. `copied` is valid during the call of done, which runs once, later. The targets of the settings' pointers
 * must outlive it. Both name the numbers of partitions; 0 for the source: as many as it says. Where a node may still
 * serve the source, this waits for a lease's length to see. place: how the source names the target afterwards, without
 * any password; at most IDENTITY_PLACE_BYTES - 1 bytes. */
void store_copy(uv_loop_t *loop, const struct store_settings *from, const struct store_settings *to, const char *place,
                void (*done)(void *arg, const struct store_copied *copied), void *arg);

/* Makes the source of an earlier copy a store again, as it was then. Only if the target is lost for good. */
void store_copy_undo(uv_loop_t *loop, const struct store_settings *from,
                     void (*done)(void *arg, const struct store_copied *copied), void *arg);

/* What the verbs on keys keep with the store, made on first use: the command and the calls of the check path to be used
 * again, and the discards. */
#pragma once
#include "base/list.h"
#include "store/key_store.h"
#include "store_internal.h"

struct key_find_call {
    struct key_discards *kept_by;
    key_found *done;
    void *arg;
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_find_call *next_free;
};

/* The command of the check path, whole but for the digest's hex digits. */
struct key_find_command {
    size_t len, digits_at;
    char storage[96 + REDIS_PREFIX_MAX_BYTES]; /* what is constant, the digits; the prefix */
};

struct key_discards {
    struct store *store;
    struct key_find_command find_command;
    struct key_find_call *free_finds;
    size_t finds; /* under way */

    struct list waiting;     /* struct key_discard */
    size_t count, in_flight; /* all that were not answered; those of them under way */
    uint64_t pause_ms;       /* after a failure, while is_pausing */
    bool is_pausing;
    bool is_closing;
    uv_timer_t timer;
    bool is_timer_closed;
    void (*closed)(void *arg);
    void *closed_arg;
};

struct key_discards *key_discards_of(struct store *store);
/* In key_store.c. */
void key_find_command_prepare(struct key_find_command *command, struct text prefix);
/* Ends what key_discards_close() began, once nothing is under way. */
void key_discards_try_end(struct key_discards *discards);

/* key_revoke.lua for anyone's key; an id that does not exist yet will never do. */
void key_store_revoke_discarded(struct store *store, const struct id *id, const struct audit_source *source,
                                script_done *done, void *arg);

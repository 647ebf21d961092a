/* What clients did and were told, held against the promise (design 1). All times are of one clock, this process's. */
#pragma once
#include "deadline.h"
#include <stdbool.h>
#include <stddef.h>

enum { HISTORY_ID_BYTES = 32, HISTORY_SECRET_BYTES = 64, HISTORY_KEYS_MAX = 200000 };

/* What was known of a key at one moment. */
struct key_knowledge {
    size_t index;
    char id[HISTORY_ID_BYTES];
    char secret[HISTORY_SECRET_BYTES];
    bool revoke_tried;    /* a DELETE was sent */
    bool revoke_answered; /* a DELETE was answered 200: from now on nobody may accept the key */
};

struct history;

struct history *history_create(void);
void history_destroy(struct history *history);

/* A creation was answered 201. */
void history_created(struct history *history, const char *id, const char *secret);
/* A random key; false when there is none. To be taken before a request is sent. */
bool history_pick(struct history *history, unsigned *seed, struct key_knowledge *ret_key);
/* The same, marked as tried to revoke; only keys that are not so far. */
bool history_pick_to_revoke(struct history *history, unsigned *seed, struct key_knowledge *ret_key);
void history_revoked(struct history *history, size_t index);

/* Judges the answer to a check against what was known before it was sent and what is known now. code: error.code, ""
 * for 200. False is a violation, printed with all that is known of it. */
bool history_judge(struct history *history, const struct key_knowledge *before, int status, const char *code);

size_t history_count(const struct history *history);
void history_at(struct history *history, size_t index, struct key_knowledge *ret_key);
/* The index of the key with that id, or HISTORY_KEYS_MAX. */
size_t history_find(struct history *history, const char *id);

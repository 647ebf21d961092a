/* Requests for a change that changed nothing count like changes: without that, unknown ids and conflicts could be asked
 * for without end. */
#pragma once
#include "core/id.h"
#include "core/key.h"
#include "engine/types.h"

struct missed_change {
    const struct id *actor, *account;
    struct text mode;    /* of a key; empty: a person */
    unsigned count;      /* so many at once */
    bool is_email_taken; /* the response says that a user has the email; an account gets 20 of these a day */
};
/* STORE_LIMITED: too many, and not counted. Any other result but STORE_OK: whether it was counted is not known. */
void change_missed(struct store *store, const struct missed_change *missed, store_limited *done, void *arg);

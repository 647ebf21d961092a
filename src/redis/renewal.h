/* Replaces the connection of a link by a new one, made with what the files say now, and loses nothing: the old one
 * stays in use until the new one is ready, and is closed when the last reply has come. */
#pragma once
#include "redis/link.h"

struct redis_renewal;

enum { RENEWAL_WHY_BYTES = 384 };

struct redis_renewal_result {
    bool is_renewed, is_refused; /* neither: the link was lost or closed meanwhile */
    char why[RENEWAL_WHY_BYTES]; /* of a refusal */
};

/* The link is ready, and no renewal of it is under way. ended runs once, later, after the last memory is free. */
struct redis_renewal *redis_renewal_begin(struct redis_link *link,
                                          void (*ended)(void *arg, const struct redis_renewal_result *result),
                                          void *arg);
/* Ends at once, unless the link is taking leave of its channels. Calls that await replies on an old connection fail, as
 * with redis_link_close(). */
void redis_renewal_cancel(struct redis_renewal *renewal);

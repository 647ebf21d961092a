/* How far this node has heard the invalidations, so that it can catch up after its connection broke (rule 1): it keeps
 * its cache, reads from the stream `inv_log` what it missed, and drops that. One for each membership. Loop thread only.
 *
 *   IDLE -- heard_catch_up(), if there is something to read -> CATCHING_UP -- the reply, or none --> IDLE
 *     +---- heard_learn() -------------------------------------> LEARNING ----- the same --------> IDLE
 */
#pragma once
#include "core/key.h"
#include "lease/identity.h"
#include "lease/kept.h"

struct heard;

struct heard_events {
    /* This key was revoked meanwhile; drop it. */
    void (*on_missed)(void *arg, const uint8_t digest[KEY_DIGEST_BYTES]);
    /* The endings of one change, if the stream names them; count may be 0. */
    void (*on_endings)(void *arg, struct change_name change, const struct heard_ending *endings, size_t count);
    /* heard_learn() has ended. */
    void (*on_learned)(void *arg);
};
/* settings and identity must outlive it. arg: also of done in heard_catch_up(). */
struct heard *heard_create(const struct lease_settings *settings, struct identity *identity,
                           const struct heard_events *events, void *arg);
/* Not while heard_is_reading(). */
void heard_destroy(struct heard *heard);

/* A heartbeat is sent: earlier ones no longer count. Then its reply, which names the last entry of the stream (empty:
 * the stream is not complete), and its echo, in either order. */
void heard_on_heartbeat(struct heard *heard);
void heard_on_reply(struct heard *heard, struct text last);
void heard_on_echo(struct heard *heard);

/* Whether there is a known entry: everything up to it was heard. */
bool heard_has_known(const struct heard *heard);
/* The cache was emptied, so nothing needs to be caught up. Call it whenever something that was said may not have been
 * heard for another reason than a broken connection. */
void heard_forget(struct heard *heard);

enum caught_up {
    CAUGHT_UP,       /* on_missed has run for all that were missed */
    CANNOT_CATCH_UP, /* empty the cache */
    CATCH_UP_AGAIN,  /* while it was read, the server was not known any more to hold our store (rule 11) */
};
/* Reads what was missed, once `subscribed` (the link with the confirmed subscription) is ready. done runs exactly once,
 * perhaps inside this call, or not at all if the read cannot be sent yet: then call it again. done also runs if
 * `subscribed` was lost meanwhile; then it says nothing. */
void heard_catch_up(struct heard *heard, const struct redis_link *subscribed,
                    void (*done)(void *arg, enum caught_up result));
bool heard_is_reading(const struct heard *heard);
/* Without a known entry: reads what the stream holds of the last ten minutes, only to keep it (rule 13). A failure is
 * no loss but of memory. heard_is_reading() until the reply has come. */
void heard_learn(struct heard *heard);

/* What membership.c and membership_messages.c share. */
#pragma once
#include "base/callback.h"
#include "base/log.h"
#include "core/limits.h"
#include "lease/chains.h"
#include "lease/heard.h"
#include "lease/membership.h"
#include "redis/link.h"
#include <uv.h>

enum {
    NONCE_CHARS = 16,
    CHANNEL_BYTES = REDIS_PREFIX_MAX_BYTES + MEMBER_NAME_CHARS + 16,
};

/*   NONE -- subscribed --> BEHIND -- caught up, or nothing to catch up with --> BEGUN
 *
 * From each but the last to NONE when the connection is lost, and to CLOSED when the owner closes it. */
enum membership_state {
    MEMBERSHIP_NONE,   /* not subscribed */
    MEMBERSHIP_BEHIND, /* subscribed, but what was missed before is not known */
    MEMBERSHIP_BEGUN,  /* it may have a lease */
    MEMBERSHIP_CLOSED, /* waits for what is under way */
};

struct membership {
    const struct lease_settings *settings;
    struct membership_parts with;
    struct heard *heard;
    struct redis_link *link; /* NULL once closed */
    struct membership_events events;
    void *arg;
    const struct membership_watch *watch; /* NULL: nobody watches */
    void *watch_arg;
    uint32_t lease_ms;

    enum membership_state state;
    bool has_to_learn;           /* what others have heard before: it has not caught up, and so has not heard it */
    bool is_silent;              /* this connection was given up because nothing arrived on it */
    uint64_t connections;        /* made or lost so far */
    uint64_t sent_on, asked_on;  /* of them, when the latest heartbeat was sent and what was missed was read */
    uint64_t subscribed_ns;      /* the latest subscription was confirmed */
    uint64_t behind_until_ns;    /* then the cache is emptied instead */
    struct member_name id;       /* of the current connection, or of the one being made */
    struct member_name previous; /* ended, but perhaps still in the registry; empty: none */
    char invalidations[CHANNEL_BYTES], own[CHANNEL_BYTES];
    uint64_t epoch; /* rises with each event that makes earlier reads unfit for the cache */

    uint64_t lease_until_ns;
    uint64_t mastery_until_ns; /* the same, but not ended by leaving: until then no other Redis is the master */
    bool has_lease;            /* as last logged */
    struct log_pause gain_pause, loss_pause;

    uv_timer_t ticker;
    int64_t number;          /* in the registry's entry; 0: no heartbeat since this connection was made */
    bool is_marked;          /* revokers mark the entry, and compare no numbers */
    uint64_t nonce, sent_ns; /* of the latest heartbeat */
    bool is_awaited;         /* it may still grant a lease, once it is: */
    bool is_echoed;          /* received on the `invalidations` connection */
    bool is_replicated;      /* acknowledged by enough replicas */
    bool is_under_way;       /* the reply of its script or of WAIT is pending */
    bool has_too_few;        /* too few replicas acknowledged the last answered heartbeat */
    unsigned echoes_missed;  /* in a row, although the script was answered */

    bool is_leaving, is_leave_under_way;
    bool is_ticker_closed;
    void (*on_left)(void *arg);
    void *left_arg;
    struct callback closed;
};

/* BEHIND or BEGUN. */
bool membership_is_subscribed(const struct membership *member);
/* Of a membership ("node:"), or of invalidations ("inv", ""). */
void membership_channel(char channel[CHANNEL_BYTES], const char *prefix, const char *kind, const char *name);
/* The heartbeat may grant its lease now. */
void membership_try_lease(struct membership *member);
void membership_tell_watch(const struct membership *member);
/* What was heard, for the time when a Redis may have lost it (rule 13). */
void membership_keep(const struct membership *member, struct change_name change, const struct heard_ending *endings,
                     size_t count);
/* A message on one of the membership's channels. False: it cannot be parsed, so the connection ends. */
bool membership_on_message(void *arg, struct text channel, struct text payload);

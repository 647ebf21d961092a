/* The clients, all of one thread. They create keys, and check each at every node all its life. They revoke it at one
 * node, at two at once, by command, by its secret, at a time that lies ahead, or together with up to 49 others: by a
 * list, or by as many requests at once. They repeat that until it is answered, and around that moment, or the key's
 * time, they check most often. Or they replace it, and repeat that, too: until its end, it or a successor whose secret
 * came is accepted. Meanwhile people sign in. Requests and responses go into the history. */
#pragma once
#include "availability.h"
#include "cluster.h"
#include "endings.h"
#include "history.h"
#include "table_readers.h"
#include <stdatomic.h>

enum { CLIENTS_USERS_MAX = 8 };

struct clients_plan {
    struct cluster *cluster;
    struct history *history;
    unsigned seed;
    unsigned unit_ms;         /* what times are counted in: the lease */
    unsigned keys_per_second; /* made, and revoked some time later */
    bool stop_at_violation;
    struct endings *endings;           /* NULL: none */
    struct table_readers *readers;     /* NULL: no tables are shared */
    struct board *board;               /* of the readers */
    struct availability *availability; /* NULL: accounts are in no partitions */
    const struct fixture_user *users;
    unsigned user_count;
};

struct clients_counts {
    size_t asked[EVENT_KINDS], answered[EVENT_KINDS]; /* answered: other than 503 */
    size_t accepted, refused, unavailable, unknown;   /* of the checks */
    size_t kept_out;                                  /* checks that no connection was free for */
    size_t together[2], lists[2], held[2]; /* keys revoked in groups, by lists, by their secrets: asked, answered */
    size_t repeated, successors_ended, successors_used; /* replacements, and what was answered then */
    size_t inherited;                                   /* ends, by keys that other keys made */
    int64_t revoke_ms_max;
    double revoke_ms_sum;
};

/* A creation that was sent. Its key's name is "torture-<number>". */
struct creation {
    uint8_t node, account;
    uint16_t incarnation;
    int status;     /* of the answer; 0: none came */
    int64_t end_ms; /* when it came, or was given up */
};

struct clients;

struct clients *clients_start(const struct clients_plan *plan);
/* It ended by itself: at a violation, or because the history is full. */
bool clients_ended(const struct clients *clients);
/* Ends what is under way and waits for the thread. */
void clients_stop(struct clients *clients);

/* After clients_stop(). */
const struct clients_counts *clients_counts(const struct clients *clients);
/* NULL when there was no such creation. */
const struct creation *clients_creation(const struct clients *clients, size_t number);
/* The session of that user; false when no sign-in was answered, or it may be lost because the store went back. */
bool clients_session(const struct clients *clients, unsigned user, struct fixture_session *ret_session);
void clients_destroy(struct clients *clients);

/* The gate: bounds the work of accounts, so that none takes it from the others. Each row of the route table names a
 * class. Requests of a class with places run while they hold one; the others wait in a queue that serves accounts in
 * turn, and within an account people before live keys before test keys, and principals of one rank in turn. Keys get at
 * most half of an account's places. If its queue is full, one that comes before another gets its room, so that people
 * and live keys always find some.
 *
 * Pure: it reads no clock and sets no timer. now_ms is any clock that does not go back. */
#pragma once
#include "base/attr.h"
#include "base/list.h"
#include "core/id.h"

/* The bound of a request. Only the last three have places; gate.c has their numbers. */
enum gate_class {
    GATE_UNKNOWN,  /* no row may have this */
    GATE_CHECK,    /* nothing: answered from what the guard knows */
    GATE_ONE,      /* nothing: ends one thing, and that is never refused for other work */
    GATE_CHANGE,   /* the changes of a principal, counted in the store */
    GATE_STRANGER, /* attempts by network, counted in the store: there is no account yet */
    GATE_READ,     /* reads the store by one script: places, and a bucket of tokens */
    GATE_WORK,     /* reads the store by many scripts: places */
    GATE_END,      /* ends many things: places of its own, which no other class takes */
    GATE_CLASSES
};

enum gate_rank { GATE_PERSON, GATE_LIVE_KEY, GATE_TEST_KEY, GATE_RANKS };

struct gate_settings {
    unsigned reads_per_second; /* of an account, for each rank; twice as many at once. 0: no limit */
    unsigned work_per_account; /* places of GATE_WORK; a node has twice as many. At least 1 */
    /* Calls gate_turn() in so many ms, never inside this call; a later call replaces an earlier one. */
    void (*wake)(void *arg, uint64_t in_ms);
    /* No work of classes with many scripts has run or waited for a second: memory may go back to the system. */
    void (*spent)(void *arg);
    void *arg;
};

struct gate_caller {
    const struct id *account, *principal;
    enum gate_rank rank;
};

/* GATE_RUN: the place is held until gate_leave(). GATE_LATE: it waited too long. GATE_CLOSED: the node stops, or the
 * client has gone. */
enum gate_result { GATE_RUN, GATE_LATE, GATE_CLOSED };
typedef void gate_done(void *arg, enum gate_result result);

/* A request at the gate. The caller owns it, keeps it in place, and ends it by gate_leave(). */
struct gate_ticket {
    struct gate *gate; /* NULL: left */
    struct list in_queue, by_age;
    struct gate_principal *principal;
    enum gate_class class;
    enum { GATE_ENTERED, GATE_WAITING, GATE_RUNNING, GATE_RESTING } state;
    bool goes_on;
    uint64_t due_ms;
    bool (*is_gone)(void *arg);
    gate_done *done;
    void *arg;
};

struct gate *gate_create(const struct gate_settings *settings);
/* Once all tickets have been left. NULL-safe. */
void gate_destroy(struct gate *gate);
/* Ends all waiting by GATE_CLOSED, and lets nothing run any more. */
void gate_close(struct gate *gate);

bool gate_has_places(enum gate_class class);
/* Before the body of a request of a class with places is read: whether it would be taken now. Holds nothing, because a
 * body may come as slowly as its client likes. */
MUST_CHECK bool gate_has_room(struct gate *gate, enum gate_class class, const struct gate_caller *caller,
                              uint64_t now_ms);
/* Once a request of a class with places is complete. Returns 0 and takes the ticket; or the seconds after which it may
 * be tried again. May end the waiting of another by GATE_LATE, inside this call. is_gone: whether nobody waits for the
 * answer any more; done and is_gone get arg. */
MUST_CHECK uint32_t gate_enter(struct gate *gate, enum gate_class class, const struct gate_caller *caller,
                               uint64_t now_ms, bool (*is_gone)(void *arg), gate_done *done, void *arg,
                               struct gate_ticket *ret_ticket);
/* True: it has its place. False: done runs later, once. */
MUST_CHECK bool gate_wait(struct gate_ticket *ticket, uint64_t now_ms);
/* Gives the place back, but goes on later by gate_wait(): for an answer in pieces, between two of them. */
void gate_rest(struct gate_ticket *ticket, uint64_t now_ms);
/* In every state, also repeatedly, also without having waited. */
void gate_leave(struct gate_ticket *ticket, uint64_t now_ms);
/* Lets run what may run, and ends the waiting of those that are late or gone. */
void gate_turn(struct gate *gate, uint64_t now_ms);

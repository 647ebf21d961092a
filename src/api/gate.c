#include "api/gate.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/bucket.h"
#include <stdlib.h>

enum {
    FIRST = GATE_READ, /* the first class with places */
    BOUNDED = GATE_CLASSES - FIRST,
    BURST_S = 2, /* tokens that may be saved */
    US_PER_MS = 1000,
    US_PER_S = 1000 * 1000,
    MS_PER_S = 1000,
    RETRY_AFTER_S = 1,
    GO_ON_MS = 30 * 1000, /* a stream without progress for so long ends */
    SPENT_AFTER_MS = 1000,
    FORGOTTEN_AT_ONCE = 2, /* accounts; one is added at a time */
};

/* A read takes Redis up to some 2 ms and a slice of work 1 ms, and Redis runs what is under way on one connection
 * before it looks at another. So the places of a node say how long anybody's revocation may have to wait. */
static const struct bounds {
    unsigned places, places_of_account;              /* 0: by the settings */
    unsigned queue, queue_of_account, queue_of_keys; /* queue 0: bounded by that of each account, and by bytes */
    uint64_t wait_ms;
    enum metric running, waiting, refused;
} BOUNDS[BOUNDED] = {
    [GATE_READ - FIRST] = {16, 8, 1024, 256, 128, 10000, METRIC_GATE_READ_RUNNING, METRIC_GATE_READ_WAITING,
                           METRIC_GATE_READ_REFUSED},
    [GATE_WORK - FIRST] = {0, 0, 256, 32, 16, 10000, METRIC_GATE_WORK_RUNNING, METRIC_GATE_WORK_WAITING,
                           METRIC_GATE_WORK_REFUSED},
    [GATE_END -
        FIRST] = {4, 2, 0, 16, 16, 30000, METRIC_GATE_END_RUNNING, METRIC_GATE_END_WAITING, METRIC_GATE_END_REFUSED},
};

/* Of a class. Tickets are pending from gate_enter() until they run. */
struct counts {
    unsigned running, pending;
};

/* One that has tickets in one class. */
struct gate_principal {
    struct list in_turn; /* of its share: those of one rank that have waiting tickets, the next one first */
    struct list in_share;
    struct gate_share *share;
    struct id id;
    enum gate_rank rank;
    unsigned tickets;
    struct list waiting; /* struct gate_ticket */
};

/* An account's part of a class. */
struct gate_share {
    struct gate_account *account;
    struct list in_turn; /* of the class: accounts that have waiting tickets */
    struct counts all, keys;
    unsigned waiting;
    struct list principals, turns[GATE_RANKS];
};

struct gate_account {
    struct list in_bucket, by_use;
    struct id id;
    unsigned tickets;
    uint64_t full_us[GATE_RANKS]; /* when the bucket of tokens will be full again (GCRA) */
    struct gate_share shares[BOUNDED];
};

struct gate {
    struct gate_settings settings;
    bool is_closed, is_turning;
    bool must_turn;   /* again: something has changed during the turn */
    uint64_t used_ms; /* when work of many scripts last ended; 0: nothing to give back */
    struct list buckets[BUCKETS], by_use;
    struct class_state {
        struct list turn;             /* struct gate_share */
        struct list by_age, going_on; /* struct gate_ticket: those that wait, the oldest first */
        struct counts all;
        unsigned waiting;
    } classes[BOUNDED];
};

bool gate_has_places(enum gate_class class)
{
    CHECK(class > GATE_UNKNOWN && class < GATE_CLASSES);
    return (int)class >= FIRST;
}

struct gate *gate_create(const struct gate_settings *settings)
{
    struct gate *gate = mem_alloc(sizeof *gate);

    CHECK(settings->work_per_account > 0);
    gate->settings = *settings;
    list_init(&gate->by_use);
    for (size_t i = 0; i < BUCKETS; i++)
        list_init(&gate->buckets[i]);
    for (size_t i = 0; i < BOUNDED; i++) {
        list_init(&gate->classes[i].turn);
        list_init(&gate->classes[i].by_age);
        list_init(&gate->classes[i].going_on);
    }
    return gate;
}

/* Accounts: those that have tickets, or whose tokens are not all back yet */

static struct gate_account *account_make(struct gate *gate, const struct id *id)
{
    struct gate_account *account = mem_alloc(sizeof *account);

    account->id = *id;
    list_append(&gate->buckets[bucket_of_account(id)], &account->in_bucket);
    list_append(&gate->by_use, &account->by_use);
    for (size_t i = 0; i < BOUNDED; i++) {
        struct gate_share *share = &account->shares[i];

        share->account = account;
        list_init(&share->in_turn);
        list_init(&share->principals);
        for (size_t rank = 0; rank < GATE_RANKS; rank++)
            list_init(&share->turns[rank]);
    }
    return account;
}

static void account_free(struct gate_account *account)
{
    list_remove(&account->in_bucket);
    list_remove(&account->by_use);
    free(account);
}

static bool is_idle(const struct gate_account *account, uint64_t now_ms)
{
    bool is_full = true;

    for (size_t rank = 0; rank < GATE_RANKS; rank++)
        is_full = is_full && account->full_us[rank] <= now_ms * US_PER_MS;
    return is_full && account->tickets == 0;
}

/* Those that were used least recently. */
static void forget_idle(struct gate *gate, uint64_t now_ms)
{
    for (unsigned i = 0; i < FORGOTTEN_AT_ONCE && !list_empty(&gate->by_use); i++) {
        struct gate_account *account = LIST_ENTRY(list_first(&gate->by_use), struct gate_account, by_use);

        if (is_idle(account, now_ms)) {
            account_free(account);
        } else {
            list_remove(&account->by_use);
            list_append(&gate->by_use, &account->by_use);
        }
    }
}

static struct gate_account *account_find(struct gate *gate, const struct id *id, uint64_t now_ms)
{
    struct list *bucket = &gate->buckets[bucket_of_account(id)];

    forget_idle(gate, now_ms);
    for (struct list *node = bucket->next; node != bucket; node = node->next) {
        struct gate_account *account = LIST_ENTRY(node, struct gate_account, in_bucket);

        if (id_equal(&account->id, id))
            return account;
    }
    return account_make(gate, id);
}

void gate_destroy(struct gate *gate)
{
    struct list *node;

    while (gate && (node = list_first(&gate->by_use))) {
        struct gate_account *account = LIST_ENTRY(node, struct gate_account, by_use);

        CHECK(account->tickets == 0);
        account_free(account);
    }
    free(gate);
}

/* Principals */

static struct gate_principal *principal_take(struct gate_share *share, const struct gate_caller *caller)
{
    struct gate_principal *principal;

    for (struct list *node = share->principals.next; node != &share->principals; node = node->next) {
        principal = LIST_ENTRY(node, struct gate_principal, in_share);
        if (id_equal(&principal->id, caller->principal)) {
            principal->tickets++;
            return principal;
        }
    }
    principal = mem_alloc(sizeof *principal);
    principal->share = share;
    principal->id = *caller->principal;
    principal->rank = caller->rank;
    principal->tickets = 1;
    list_init(&principal->in_turn);
    list_init(&principal->waiting);
    list_append(&share->principals, &principal->in_share);
    return principal;
}

static void principal_give_back(struct gate_principal *principal)
{
    if (--principal->tickets > 0)
        return;
    list_remove(&principal->in_turn);
    list_remove(&principal->in_share);
    free(principal);
}

/* Tickets */

static const struct bounds *bounds_of(const struct gate_ticket *ticket)
{
    return &BOUNDS[ticket->class - FIRST];
}

static struct class_state *class_of(const struct gate_ticket *ticket)
{
    return &ticket->gate->classes[ticket->class - FIRST];
}

static bool is_key(const struct gate_ticket *ticket)
{
    return ticket->principal->rank != GATE_PERSON;
}

static void count(const struct gate_ticket *ticket, int running, int pending)
{
    struct gate_share *share = ticket->principal->share;
    struct counts *const all[] = {&class_of(ticket)->all, &share->all, is_key(ticket) ? &share->keys : NULL};

    for (size_t i = 0; i < sizeof all / sizeof *all && all[i]; i++) {
        all[i]->running += (unsigned)running;
        all[i]->pending += (unsigned)pending;
    }
    metric_add(bounds_of(ticket)->running, running);
}

static void queue_put(struct gate_ticket *ticket)
{
    struct class_state *class = class_of(ticket);
    struct gate_principal *principal = ticket->principal;
    struct gate_share *share = principal->share;

    ticket->state = GATE_WAITING;
    list_append(&principal->waiting, &ticket->in_queue);
    list_append(ticket->goes_on ? &class->going_on : &class->by_age, &ticket->by_age);
    if (list_empty(&principal->in_turn))
        list_append(&share->turns[principal->rank], &principal->in_turn);
    if (share->waiting++ == 0)
        list_append(&class->turn, &share->in_turn);
    class->waiting++;
    metric_add(bounds_of(ticket)->waiting, 1);
}

static void queue_remove(struct gate_ticket *ticket)
{
    struct gate_principal *principal = ticket->principal;

    list_remove(&ticket->in_queue);
    list_remove(&ticket->by_age);
    if (list_empty(&principal->waiting))
        list_remove(&principal->in_turn);
    if (--principal->share->waiting == 0)
        list_remove(&principal->share->in_turn);
    class_of(ticket)->waiting--;
    metric_add(bounds_of(ticket)->waiting, -1);
}

static unsigned places_of_account(const struct gate *gate, enum gate_class class)
{
    return class == GATE_WORK ? gate->settings.work_per_account : BOUNDS[class - FIRST].places_of_account;
}

static unsigned places_of_node(const struct gate *gate, enum gate_class class)
{
    return class == GATE_WORK ? 2 * gate->settings.work_per_account : BOUNDS[class - FIRST].places;
}

static unsigned half_of(unsigned number)
{
    return number > 1 ? number / 2 : 1;
}

static bool finds_place(const struct gate *gate, enum gate_class class, const struct gate_share *share,
                        enum gate_rank rank)
{
    const unsigned most = places_of_account(gate, class);

    return !gate->is_closed && gate->classes[class - FIRST].all.running < places_of_node(gate, class) &&
           share->all.running < most && (rank == GATE_PERSON || share->keys.running < half_of(most));
}

static bool finds_room(const struct gate *gate, enum gate_class class, const struct gate_share *share,
                       enum gate_rank rank)
{
    const struct bounds *bounds = &BOUNDS[class - FIRST];

    return (bounds->queue == 0 || gate->classes[class - FIRST].all.pending < bounds->queue) &&
           share->all.pending < bounds->queue_of_account &&
           (rank == GATE_PERSON || share->keys.pending < bounds->queue_of_keys);
}

/* Forgets the clock's fraction of a millisecond, which is less than a token. */
static uint32_t take_token(const struct gate *gate, struct gate_account *account, enum gate_rank rank, uint64_t now_ms)
{
    const unsigned per_second = gate->settings.reads_per_second;
    const uint64_t now_us = now_ms * US_PER_MS, all_us = BURST_S * US_PER_S;
    uint64_t *full_us = &account->full_us[rank];

    if (per_second == 0)
        return 0;
    if (*full_us < now_us)
        *full_us = now_us;
    if (*full_us + US_PER_S / per_second > now_us + all_us)
        return (uint32_t)((*full_us + US_PER_S / per_second - now_us - all_us + US_PER_S - 1) / US_PER_S);
    *full_us += US_PER_S / per_second;
    return 0;
}

/* Ends the waiting of a ticket; its owner leaves it. */
static void drop(struct gate_ticket *ticket, enum gate_result result)
{
    queue_remove(ticket);
    ticket->state = GATE_RESTING;
    count(ticket, 0, -1);
    if (result == GATE_LATE)
        metric_add(bounds_of(ticket)->refused, 1);
    ticket->done(ticket->arg, result);
}

static void drop_gone(struct gate_share *share)
{
    for (struct list *p = share->principals.next, *next; p != &share->principals; p = next) {
        struct gate_principal *principal = LIST_ENTRY(p, struct gate_principal, in_share);

        principal->tickets++; /* keeps it while its tickets leave */
        for (struct list *t = principal->waiting.next, *after; t != &principal->waiting; t = after) {
            struct gate_ticket *ticket = LIST_ENTRY(t, struct gate_ticket, in_queue);

            after = t->next;
            if (ticket->is_gone(ticket->arg))
                drop(ticket, GATE_CLOSED);
        }
        next = p->next;
        principal_give_back(principal);
    }
}

/* The newest one that waits and has the worst rank behind this one; NULL: there is none. A stream that has begun is not
 * ended for others. */
static struct gate_ticket *last_behind(const struct gate_share *share, enum gate_rank rank)
{
    struct gate_ticket *last = NULL;

    for (struct list *p = share->principals.next; p != &share->principals; p = p->next) {
        const struct gate_principal *principal = LIST_ENTRY(p, struct gate_principal, in_share);

        if (principal->rank <= rank || (last && principal->rank < last->principal->rank))
            continue;
        for (struct list *t = principal->waiting.next; t != &principal->waiting; t = t->next) {
            struct gate_ticket *ticket = LIST_ENTRY(t, struct gate_ticket, in_queue);
            bool is_worse = !last || principal->rank > last->principal->rank || ticket->due_ms >= last->due_ms;

            if (!ticket->goes_on && is_worse)
                last = ticket;
        }
    }
    return last;
}

bool gate_has_room(struct gate *gate, enum gate_class class, const struct gate_caller *caller, uint64_t now_ms)
{
    struct gate_share *share = &account_find(gate, caller->account, now_ms)->shares[class - FIRST];

    CHECK(gate_has_places(class));
    if (finds_room(gate, class, share, caller->rank) || last_behind(share, caller->rank))
        return true;
    drop_gone(share);
    if (finds_room(gate, class, share, caller->rank))
        return true;
    metric_add(BOUNDS[class - FIRST].refused, 1);
    return false;
}

/* Dropped requests are answered here, which may release the account's last ticket: so it is held meanwhile. */
static bool make_room(struct gate *gate, enum gate_class class, struct gate_account *account, enum gate_rank rank)
{
    struct gate_share *share = &account->shares[class - FIRST];
    struct gate_ticket *last;

    if (finds_room(gate, class, share, rank))
        return true;
    account->tickets++;
    drop_gone(share);
    if (!finds_room(gate, class, share, rank) && (last = last_behind(share, rank)))
        drop(last, GATE_LATE);
    account->tickets--;
    return finds_room(gate, class, share, rank);
}

uint32_t gate_enter(struct gate *gate, enum gate_class class, const struct gate_caller *caller, uint64_t now_ms,
                    bool (*is_gone)(void *arg), gate_done *done, void *arg, struct gate_ticket *ret_ticket)
{
    struct gate_account *account = account_find(gate, caller->account, now_ms);
    struct gate_share *share = &account->shares[class - FIRST];
    uint32_t wait_s = 0;

    CHECK(gate_has_places(class));
    if (!make_room(gate, class, account, caller->rank))
        wait_s = RETRY_AFTER_S;
    else if (class == GATE_READ)
        wait_s = take_token(gate, account, caller->rank, now_ms);
    if (wait_s > 0) {
        metric_add(BOUNDS[class - FIRST].refused, 1);
        return wait_s;
    }
    *ret_ticket = (struct gate_ticket){
        .gate = gate, .class = class, .state = GATE_ENTERED, .is_gone = is_gone, .done = done, .arg = arg};
    list_init(&ret_ticket->in_queue);
    list_init(&ret_ticket->by_age);
    ret_ticket->principal = principal_take(share, caller);
    account->tickets++;
    count(ret_ticket, 0, 1);
    return 0;
}

static void wake_now(struct gate *gate)
{
    if (gate->is_turning)
        gate->must_turn = true;
    else
        gate->settings.wake(gate->settings.arg, 0);
}

static void run(struct gate_ticket *ticket)
{
    ticket->state = GATE_RUNNING;
    count(ticket, 1, -1);
}

bool gate_wait(struct gate_ticket *ticket, uint64_t now_ms)
{
    struct gate *gate = ticket->gate;
    const struct gate_principal *principal = ticket->principal;

    CHECK(ticket->state == GATE_ENTERED || ticket->state == GATE_RESTING);
    ticket->goes_on = ticket->state == GATE_RESTING;
    if (ticket->goes_on)
        count(ticket, 0, 1);
    if (class_of(ticket)->waiting == 0 && finds_place(gate, ticket->class, principal->share, principal->rank)) {
        run(ticket);
        return true;
    }
    ticket->due_ms = now_ms + (ticket->goes_on ? GO_ON_MS : bounds_of(ticket)->wait_ms);
    queue_put(ticket);
    wake_now(gate);
    return false;
}

/* Takes the ticket out of whatever it is in. */
static void withdraw(struct gate_ticket *ticket, uint64_t now_ms)
{
    struct gate *gate = ticket->gate;
    bool was_running = ticket->state == GATE_RUNNING;

    if (ticket->state == GATE_WAITING)
        queue_remove(ticket);
    if (ticket->state != GATE_RESTING)
        count(ticket, was_running ? -1 : 0, was_running ? 0 : -1);
    ticket->state = GATE_RESTING;
    if (was_running && ticket->class != GATE_READ)
        gate->used_ms = now_ms;
    if (was_running && (class_of(ticket)->waiting > 0 || ticket->class != GATE_READ))
        wake_now(gate);
}

void gate_rest(struct gate_ticket *ticket, uint64_t now_ms)
{
    if (ticket->gate)
        withdraw(ticket, now_ms);
}

void gate_leave(struct gate_ticket *ticket, uint64_t now_ms)
{
    if (!ticket->gate)
        return;
    withdraw(ticket, now_ms);
    ticket->principal->share->account->tickets--;
    principal_give_back(ticket->principal);
    ticket->gate = NULL;
}

/* Turns */

/* The next ticket of an account that may run; NULL: none may. */
static struct gate_ticket *next_of(const struct gate *gate, enum gate_class class, struct gate_share *share)
{
    for (enum gate_rank rank = 0; rank < GATE_RANKS; rank++) {
        struct list *node = list_first(&share->turns[rank]);

        if (node && finds_place(gate, class, share, rank))
            return LIST_ENTRY(list_first(&LIST_ENTRY(node, struct gate_principal, in_turn)->waiting),
                              struct gate_ticket, in_queue);
    }
    return NULL;
}

static struct gate_ticket *next_in(struct gate *gate, enum gate_class class)
{
    struct list *turn = &gate->classes[class - FIRST].turn;
    struct gate_ticket *ticket = NULL;

    for (struct list *node = turn->next; node != turn && !ticket; node = node->next)
        ticket = next_of(gate, class, LIST_ENTRY(node, struct gate_share, in_turn));
    return ticket;
}

/* Account and principal go to the end of their lines. */
static void let_run(struct gate_ticket *ticket)
{
    struct gate_principal *principal = ticket->principal;
    struct gate_share *share = principal->share;
    struct list *turn = &class_of(ticket)->turn;

    queue_remove(ticket);
    run(ticket);
    if (share->waiting > 0) {
        list_remove(&share->in_turn);
        list_append(turn, &share->in_turn);
    }
    if (!list_empty(&principal->waiting)) {
        list_remove(&principal->in_turn);
        list_append(&share->turns[principal->rank], &principal->in_turn);
    }
    ticket->done(ticket->arg, GATE_RUN);
}

static void run_class(struct gate *gate, enum gate_class class)
{
    struct gate_ticket *ticket;

    while ((ticket = next_in(gate, class))) {
        if (ticket->is_gone(ticket->arg))
            drop(ticket, GATE_CLOSED);
        else
            let_run(ticket);
    }
}

static struct gate_ticket *oldest(struct list *line)
{
    struct list *node = list_first(line);

    return node ? LIST_ENTRY(node, struct gate_ticket, by_age) : NULL;
}

/* Lines in the order of their due times. Returns when the next one is due; UINT64_MAX: none is. */
static uint64_t end_late(struct list *line, uint64_t now_ms)
{
    struct gate_ticket *ticket;

    while ((ticket = oldest(line)) && ticket->due_ms <= now_ms)
        drop(ticket, ticket->is_gone(ticket->arg) ? GATE_CLOSED : GATE_LATE);
    return ticket ? ticket->due_ms : UINT64_MAX;
}

static bool is_busy(const struct gate *gate)
{
    const struct counts *work = &gate->classes[GATE_WORK - FIRST].all, *end = &gate->classes[GATE_END - FIRST].all;

    return work->running + work->pending + end->running + end->pending > 0;
}

/* Returns when to look again. */
static uint64_t note_spent(struct gate *gate, uint64_t now_ms)
{
    if (gate->used_ms == 0 || is_busy(gate))
        return UINT64_MAX;
    if (now_ms < gate->used_ms + SPENT_AFTER_MS)
        return gate->used_ms + SPENT_AFTER_MS;
    gate->used_ms = 0;
    gate->settings.spent(gate->settings.arg);
    return UINT64_MAX;
}

/* Returns when the next ticket of the class is due. */
static uint64_t turn_of(struct gate *gate, enum gate_class class, uint64_t now_ms)
{
    struct class_state *state = &gate->classes[class - FIRST];
    uint64_t going_on_ms = end_late(&state->going_on, now_ms), by_age_ms = end_late(&state->by_age, now_ms);

    run_class(gate, class);
    return going_on_ms < by_age_ms ? going_on_ms : by_age_ms;
}

static void end_all(struct gate *gate)
{
    for (size_t i = 0; i < BOUNDED; i++) {
        struct gate_ticket *ticket;

        while ((ticket = oldest(&gate->classes[i].by_age)) || (ticket = oldest(&gate->classes[i].going_on)))
            drop(ticket, GATE_CLOSED);
    }
}

void gate_turn(struct gate *gate, uint64_t now_ms)
{
    uint64_t due_ms = note_spent(gate, now_ms);

    CHECK(!gate->is_turning);
    gate->is_turning = true;
    gate->must_turn = false;
    if (gate->is_closed)
        end_all(gate);
    for (enum gate_class class = GATE_READ; class < GATE_CLASSES; class ++) {
        uint64_t next_ms = turn_of(gate, class, now_ms);

        due_ms = next_ms < due_ms ? next_ms : due_ms;
    }
    gate->is_turning = false;
    if (gate->must_turn)
        wake_now(gate);
    else if (due_ms != UINT64_MAX)
        gate->settings.wake(gate->settings.arg, due_ms > now_ms ? due_ms - now_ms : 0);
}

void gate_close(struct gate *gate)
{
    gate->is_closed = true;
    end_all(gate);
}

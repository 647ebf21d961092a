/* What this node has promised, told again where it was lost (rule 13). Each of its changes has a number, which the
 * change's script writes into the store beside what it changes: so the store tells how much of what this node answered
 * it holds, whatever others have changed there since. A store that holds less lost it (a replica that lagged was
 * promoted, a backup was restored). Nothing is decided by it until the revocations among the lost changes have been
 * made again, and nothing else is missing, or an operator has accepted that. */
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/mem.h"
#include "base/random.h"
#include "core/lease_rules.h"
#include "store_state.h"
#include "verb_internal.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REVOCATIONS_MAX = 16384, /* 1.4 MB; those before them are in the revocation log alone */
    REVOCATIONS_FIRST = 64,
    OTHERS_MAX = 1024, /* they are only counted */
    AT_ONCE = 32,      /* more would not be answered in time by a Redis that waits for replicas */
};
static const uint64_t KEPT_NS = UINT64_C(600) * 1000 * CLOCK_NS_PER_MS;

struct kept_revocation {
    uint64_t number, answered_ns;
    struct id key;
    char actor[ID_TEXT_BYTES];
};

/* Both are rings, in the order of their numbers. */
struct promises {
    char maker[STORE_ID_CHARS + 1]; /* this node, as it is named in the store */
    uint64_t number;                /* of the newest change that was sent */
    uint64_t answered;              /* the highest number of one that was acknowledged */
    uint64_t forgotten;             /* the highest of what the rings do not hold any more */
    struct kept_revocation *revocations;
    size_t revocations_max, first, count;
    uint64_t others[OTHERS_MAX];
    size_t others_first, others_count;

    /* Telling again; one at a time. */
    bool is_behind, is_telling, has_failed, is_accepted;
    uint64_t held; /* by the store */
    size_t next, under_way, told;
    char told_run_id[REDIS_RUN_ID_CHARS + 1]; /* the Redis that has been told all, when it held told_held */
    uint64_t told_held;
    char trouble[320];
};

static void tell_on(struct store *store);

void promises_create(struct store *store)
{
    struct promises *promises = mem_alloc(sizeof *promises);
    uint8_t bytes[STORE_ID_CHARS / 2];
    struct buf out;

    random_secret(bytes, sizeof bytes);
    buf_init_fixed(&out, promises->maker, STORE_ID_CHARS);
    encode_hex(&out, bytes, sizeof bytes);
    CHECK(!out.failed);
    store->promises = promises;
}

void promises_destroy(struct store *store)
{
    free(store->promises->revocations);
    free(store->promises);
}

/* Making promises */

const char *promises_maker(const struct store *store)
{
    return store->promises->maker;
}

uint64_t promises_answered(const struct store *store)
{
    return RULE(RULE_REASSERT) ? store->promises->answered : 0;
}

uint64_t promises_next(struct store *store)
{
    return ++store->promises->number;
}

static void forget(struct promises *promises, uint64_t number)
{
    if (number > promises->forgotten)
        promises->forgotten = number;
}

void promises_note(struct store *store, uint64_t number)
{
    struct promises *promises = store->promises;

    if (number > promises->answered)
        promises->answered = number;
    if (promises->others_count == OTHERS_MAX) {
        forget(promises, promises->others[promises->others_first]);
        promises->others_first = (promises->others_first + 1) % OTHERS_MAX;
        promises->others_count--;
    }
    promises->others[(promises->others_first + promises->others_count++) % OTHERS_MAX] = number;
}

static struct kept_revocation *revocation_at(struct promises *promises, size_t index)
{
    return &promises->revocations[(promises->first + index) % promises->revocations_max];
}

static void drop_first(struct promises *promises)
{
    forget(promises, revocation_at(promises, 0)->number);
    promises->first = (promises->first + 1) % promises->revocations_max;
    promises->count--;
}

/* Full rings grow by doubling, and are put straight by it. */
static void make_room(struct promises *promises)
{
    size_t most = promises->revocations_max ? 2 * promises->revocations_max : REVOCATIONS_FIRST;
    struct kept_revocation *straight;

    if (promises->count < promises->revocations_max)
        return;
    if (most > REVOCATIONS_MAX) {
        drop_first(promises);
        return;
    }
    straight = mem_alloc(most * sizeof *straight);
    for (size_t i = 0; i < promises->count; i++)
        straight[i] = *revocation_at(promises, i);
    free(promises->revocations);
    promises->revocations = straight;
    promises->revocations_max = most;
    promises->first = 0;
}

void store_keep_revocation(struct store *store, const struct id *key, struct text actor)
{
    struct promises *promises = store->promises;
    uint64_t now_ns = clock_boot_ns();
    struct kept_revocation *kept;

    if (!store->session || promises->others_count == 0)
        return;
    while (promises->count > 0 && now_ns - revocation_at(promises, 0)->answered_ns > KEPT_NS)
        drop_first(promises);
    make_room(promises);
    /* It was noted as a change like any other, a moment ago. */
    kept = revocation_at(promises, promises->count++);
    *kept = (struct kept_revocation){.answered_ns = now_ns, .key = *key};
    kept->number = promises->others[(promises->others_first + --promises->others_count) % OTHERS_MAX];
    snprintf(kept->actor, sizeof kept->actor, "%.*s", TEXT_ARG(actor));
}

/* Telling again */

/* What cannot be told again: what is lost beside the revocations that are kept. */
static uint64_t count_missing(const struct promises *promises, bool *ret_is_exact)
{
    uint64_t missing = 0;

    *ret_is_exact = promises->forgotten <= promises->held;
    if (!*ret_is_exact)
        return promises->answered - promises->held;
    for (size_t i = 0; i < promises->others_count; i++)
        missing += promises->others[(promises->others_first + i) % OTHERS_MAX] > promises->held;
    return missing;
}

PRINTF_LIKE(2, 3) static void set_trouble(struct store *store, const char *format, ...)
{
    struct promises *promises = store->promises;
    char trouble[sizeof promises->trouble];
    va_list args;

    va_start(args, format);
    vsnprintf(trouble, sizeof trouble, format, args);
    va_end(args);
    if (strcmp(trouble, promises->trouble) == 0)
        return;
    memcpy(promises->trouble, trouble, sizeof trouble);
    LOG(LOG_ERROR, "redis lacks what this node has answered", log_str("why", trouble));
}

/* From here on the store holds whatever was promised and is not given up. */
static void settled(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct store *store = arg;
    struct promises *promises = store->promises;

    (void)reply;
    promises->is_telling = false;
    if (result != STORE_OK) {
        store_look_again(store);
        return;
    }
    LOG(LOG_WARN, "redis was told again what this node had answered", log_int("revocations", (int64_t)promises->told),
        log_int("accepted_as_lost", (int64_t)count_missing(promises, &(bool){false})));
    for (size_t i = 0; i < promises->count; i++)
        if (revocation_at(promises, i)->number > promises->held)
            revocation_at(promises, i)->number = promises->number;
    while (promises->others_count > 0 &&
           promises->others[(promises->others_first + promises->others_count - 1) % OTHERS_MAX] > promises->held)
        promises->others_count--;
    promises->forgotten = promises->forgotten > promises->held ? promises->held : promises->forgotten;
    promises->answered = promises->number;
    promises->is_behind = false;
    if (!store->is_closing && store->changes_up)
        examination_start(store);
    store_look_again(store);
}

static void settle(struct store *store)
{
    struct promises *promises = store->promises;
    bool is_exact;
    uint64_t missing = count_missing(promises, &is_exact);

    snprintf(promises->told_run_id, sizeof promises->told_run_id, "%s", redis_link_run_id(store->changes));
    promises->told_held = promises->held;
    if (missing == 0 || promises->is_accepted) {
        script_call_again(store, SCRIPT_node_settle, 0, NULL, promises_next(store), settled, store);
        return;
    }
    promises->is_telling = false;
    set_trouble(store,
                "Redis has lost %s%" PRIu64 " changes that this node has acknowledged: bring the Redis back that has "
                "them; or run 'chatelaine store accept-loss', after 'chatelaine key revoke --from-log' with the "
                "nodes' revocation logs.",
                is_exact ? "" : "up to ", missing);
    store_look_again(store);
}

static void told_again(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct store *store = arg;
    struct promises *promises = store->promises;

    (void)reply;
    promises->under_way--;
    promises->told += result == STORE_OK;
    promises->has_failed |= result != STORE_OK && result != STORE_NOT_FOUND; /* that key is lost as well */
    tell_on(store);
}

static void tell(struct store *store, const struct kept_revocation *kept)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(&kept->key));
    for (int i = 0; i < 2; i++)
        args_add(&args, TEXT("")); /* of any account and kind */
    args_add(&args, TEXT("0"));
    args_add_source(&args, store, &(struct audit_source){.actor = text_of(kept->actor)});
    args_add(&args, TEXT("0"));
    args_add(&args, TEXT("-"));
    args_add(&args, TEXT("-"));
    args_add(&args, TEXT("")); /* whoever revoked it could when he did */
    store->promises->under_way++;
    script_call_again(store, SCRIPT_key_revoke, args.count, args.argv, 0, told_again, store);
}

static void tell_on(struct store *store)
{
    struct promises *promises = store->promises;

    for (; promises->under_way < AT_ONCE && promises->next < promises->count && !promises->has_failed; promises->next++)
        if (revocation_at(promises, promises->next)->number > promises->held)
            tell(store, revocation_at(promises, promises->next));
    if (promises->under_way > 0)
        return;
    if (!promises->has_failed && !store->is_closing) {
        settle(store);
        return;
    }
    promises->is_telling = false;
    store_look_again(store);
}

const char *promises_compare(struct store *store, uint64_t held, uint64_t answered)
{
    if (held >= answered || !RULE(RULE_REASSERT))
        return NULL;
    if (!store->promises->is_behind)
        set_trouble(store, "Redis lacks changes that this node has acknowledged: it is being told again.");
    store->promises->is_behind = true;
    return store->promises->trouble;
}

/* While it is waited for the rest, once is enough. */
static bool was_told(const struct store *store)
{
    const struct promises *promises = store->promises;

    return strcmp(promises->told_run_id, redis_link_run_id(store->changes)) == 0 &&
           promises->held >= promises->told_held;
}

void promises_tell_again(struct store *store, uint64_t held, bool is_accepted)
{
    struct promises *promises = store->promises;

    if (promises->is_telling || store->is_closing)
        return;
    promises->is_telling = true;
    promises->is_accepted = is_accepted || store->settings.unsafe_redis;
    promises->has_failed = false;
    promises->held = held;
    promises->told = 0;
    promises->next = was_told(store) ? promises->count : 0;
    tell_on(store);
}

void store_accept_loss(struct store *store, store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, text_of(redis_link_run_id(store->changes)));
    verb_call_change(store, SCRIPT_store_accept_loss, &args, done, arg);
}

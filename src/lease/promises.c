#include "lease/promises.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "core/lease_rules.h"
#include "lease/names.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REVOCATIONS_MAX = 65536, /* 5.5 MB; older ones are only in the revocation log */
    REVOCATIONS_FIRST = 64,
    OTHERS_MAX = 1024, /* only counted, never repeated */
    MAKER_CHARS = 32,
    AT_ONCE = 32, /* a Redis that waits for replicas would not answer more in time */
};
static const uint64_t KEPT_NS = UINT64_C(600) * 1000 * CLOCK_NS_PER_MS;

struct kept_revocation {
    uint64_t number, answered_ns;
    struct id key;
    int64_t ends_ms; /* when it is to be revoked; 0: at once */
    char actor[ID_TEXT_BYTES];
};

struct other_change {
    uint64_t number;
    const char *what;
};

/* Both rings are in order of the change number. */
struct promises {
    const struct lease_settings *settings;
    bool is_stopped;
    char maker[MAKER_CHARS + 1]; /* this node's name in the store */
    uint64_t number;             /* of the last change sent */
    uint64_t answered;           /* the highest number acknowledged */
    uint64_t forgotten;          /* the highest number that the rings no longer hold */
    struct kept_revocation *revocations;
    size_t revocations_max, first, count;
    struct other_change others[OTHERS_MAX];
    size_t others_first, others_count;

    /* Repeating; one run at a time. */
    bool is_behind, is_telling, has_failed, is_accepted;
    uint64_t held; /* the number that the store holds */
    size_t next, under_way, told;
    char told_run_id[REDIS_RUN_ID_CHARS + 1]; /* the Redis that has heard every kept revocation above told_held */
    uint64_t told_held;
    char trouble[400];
};

static void tell_on(struct promises *promises);

struct promises *promises_create(const struct lease_settings *settings)
{
    struct promises *promises = mem_alloc(sizeof *promises);
    uint8_t bytes[MAKER_CHARS / 2];
    struct buf out;

    promises->settings = settings;
    random_secret(bytes, sizeof bytes);
    buf_init_fixed(&out, promises->maker, MAKER_CHARS);
    encode_hex(&out, bytes, sizeof bytes);
    CHECK(!out.failed);
    return promises;
}

void promises_stop(struct promises *promises)
{
    promises->is_stopped = true;
}

void promises_destroy(struct promises *promises)
{
    free(promises->revocations);
    free(promises);
}

/* Numbering changes */

const char *promises_maker(const struct promises *promises)
{
    return promises->maker;
}

uint64_t promises_answered(const struct promises *promises)
{
    return RULE(RULE_REASSERT) ? promises->answered : 0;
}

uint64_t promises_next(struct promises *promises)
{
    return ++promises->number;
}

static void forget(struct promises *promises, uint64_t number)
{
    if (number > promises->forgotten)
        promises->forgotten = number;
}

static const struct other_change *other_at(const struct promises *promises, size_t index)
{
    return &promises->others[(promises->others_first + index) % OTHERS_MAX];
}

void promises_note(struct promises *promises, uint64_t number, const char *what)
{
    if (number > promises->answered)
        promises->answered = number;
    if (promises->others_count == OTHERS_MAX) {
        forget(promises, other_at(promises, 0)->number);
        promises->others_first = (promises->others_first + 1) % OTHERS_MAX;
        promises->others_count--;
    }
    promises->others[(promises->others_first + promises->others_count++) % OTHERS_MAX] =
        (struct other_change){number, what};
}

static struct kept_revocation *revocation_at(struct promises *promises, size_t index)
{
    CHECK(promises->revocations_max > 0);
    return &promises->revocations[(promises->first + index) % promises->revocations_max];
}

static void drop_first(struct promises *promises)
{
    forget(promises, revocation_at(promises, 0)->number);
    promises->first = (promises->first + 1) % promises->revocations_max;
    promises->count--;
}

/* A full ring doubles and is then in order from index 0. */
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

/* promises_note() has just counted it among the others. */
uint64_t promises_last(const struct promises *promises)
{
    if (promises->others_count == 0)
        return 0;
    return other_at(promises, promises->others_count - 1)->number;
}

uint64_t promises_take(struct promises *promises)
{
    uint64_t number = promises_last(promises);

    if (number > 0)
        promises->others_count--;
    return number;
}

void promises_keep_revocation(struct promises *promises, uint64_t number, const struct id *key, int64_t ends_ms,
                              struct text actor)
{
    uint64_t now_ns = clock_boot_ns();
    struct kept_revocation *kept;

    if (number == 0)
        return;
    promises->told_run_id[0] = '\0'; /* it may have been made at another Redis, and the one that was told comes back */
    while (promises->count > 0 && now_ns - revocation_at(promises, 0)->answered_ns > KEPT_NS)
        drop_first(promises);
    make_room(promises);
    kept = revocation_at(promises, promises->count++);
    *kept = (struct kept_revocation){.number = number, .answered_ns = now_ns, .key = *key, .ends_ms = ends_ms};
    snprintf(kept->actor, sizeof kept->actor, "%.*s", TEXT_ARG(actor));
}

/* Repeating */

/* How many lost changes cannot be repeated, because they are not among the kept revocations. */
static uint64_t count_missing(const struct promises *promises, bool *ret_is_exact)
{
    uint64_t missing = 0;

    *ret_is_exact = promises->forgotten <= promises->held;
    if (!*ret_is_exact)
        return promises->answered - promises->held;
    for (size_t i = 0; i < promises->others_count; i++)
        missing += other_at(promises, i)->number > promises->held;
    return missing;
}

PRINTF_LIKE(2, 3) static void set_trouble(struct promises *promises, const char *format, ...)
{
    char trouble[sizeof promises->trouble];
    va_list args;

    va_start(args, format);
    vsnprintf(trouble, sizeof trouble, format, args);
    va_end(args);
    if (strcmp(trouble, promises->trouble) == 0)
        return;
    memcpy(promises->trouble, trouble, sizeof trouble);
    LOG(LOG_ERROR, "Redis lost changes that this node acknowledged", log_str("why", trouble),
        log_partition(promises->settings->prefix));
}

static void end_telling(struct promises *promises)
{
    promises->is_telling = false;
    promises->settings->on_doubt(promises->settings->arg);
}

/* From now on the store holds everything promised, except what was accepted as lost. */
static void on_settled(void *arg, bool is_done)
{
    struct promises *promises = arg;

    if (is_done) {
        LOG(LOG_WARN, "lost revocations were repeated at Redis", log_int("revocations", (int64_t)promises->told),
            log_int("accepted_as_lost", (int64_t)count_missing(promises, &(bool){false})),
            log_partition(promises->settings->prefix));
        for (size_t i = 0; i < promises->count; i++)
            if (revocation_at(promises, i)->number > promises->held)
                revocation_at(promises, i)->number = promises->number;
        while (promises_last(promises) > promises->held)
            promises->others_count--;
        promises->forgotten = promises->forgotten > promises->held ? promises->held : promises->forgotten;
        promises->answered = promises->number;
        promises->is_behind = false;
        promises->settings->on_settled(promises->settings->arg);
    }
    end_telling(promises);
}

static void settle(struct promises *promises)
{
    const struct lease_settings *settings = promises->settings;
    bool is_exact;
    uint64_t missing = count_missing(promises, &is_exact);

    snprintf(promises->told_run_id, sizeof promises->told_run_id, "%s", redis_link_run_id(settings->changes));
    promises->told_held = promises->held;
    if (missing == 0 || promises->is_accepted) {
        settings->settle(settings->arg, promises_next(promises), on_settled, promises);
        return;
    }
    set_trouble(
        promises,
        "Redis has lost %s%" PRIu64
        " change%s that this node acknowledged (%s%s): bring back the Redis that has them. If there is none, run "
        "'chatelaine key revoke --from-log' with the revocation logs of all nodes, then 'chatelaine store "
        "accept-loss'.",
        is_exact ? "" : "up to ", missing, missing == 1 ? "" : "s", missing == 1 ? "" : "the last one: ",
        promises->others_count > 0 ? other_at(promises, promises->others_count - 1)->what : "a revocation");
    end_telling(promises);
}

static void on_told_again(void *arg, enum lease_again again)
{
    struct promises *promises = arg;

    promises->under_way--;
    promises->told += again == LEASE_AGAIN_REVOKED;
    promises->has_failed |= again == LEASE_AGAIN_FAILED;
    tell_on(promises);
}

static void tell(struct promises *promises, const struct kept_revocation *kept)
{
    const struct lease_settings *settings = promises->settings;

    promises->under_way++;
    settings->revoke_again(settings->arg, &kept->key, kept->ends_ms, text_of(kept->actor), on_told_again, promises);
}

static void tell_on(struct promises *promises)
{
    for (; promises->under_way < AT_ONCE && promises->next < promises->count && !promises->has_failed; promises->next++)
        if (revocation_at(promises, promises->next)->number > promises->held)
            tell(promises, revocation_at(promises, promises->next));
    if (promises->under_way > 0)
        return;
    if (promises->has_failed || promises->is_stopped)
        end_telling(promises);
    else
        settle(promises);
}

const char *promises_compare(struct promises *promises, uint64_t held, uint64_t answered)
{
    if (held >= answered || !RULE(RULE_REASSERT))
        return NULL;
    if (!promises->is_behind)
        set_trouble(promises,
                    "Redis has lost changes that this node acknowledged: the node is repeating its revocations.");
    promises->is_behind = true;
    return promises->trouble;
}

/* While waiting for an operator, repeating once per Redis is enough. */
static bool was_told(const struct promises *promises)
{
    return strcmp(promises->told_run_id, redis_link_run_id(promises->settings->changes)) == 0 &&
           promises->held >= promises->told_held;
}

void promises_tell_again(struct promises *promises, uint64_t held, bool is_accepted)
{
    if (promises->is_telling || promises->is_stopped)
        return;
    promises->is_telling = true;
    promises->is_accepted = is_accepted || promises->settings->accepts_loss;
    promises->has_failed = false;
    promises->held = held;
    promises->told = 0;
    promises->next = was_told(promises) ? promises->count : 0;
    tell_on(promises);
}

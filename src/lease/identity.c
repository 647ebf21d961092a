#include "lease/identity.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "core/lease_rules.h"
#include "core/limits.h"
#include "lease/names.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char EMPTY[] = "The store is empty: create the first account with 'chatelaine account create', or point "
                            "--redis and --prefix at the store that has one.";
static const char LOST[] = "Redis has lost the store that this node served and is empty: restore the data. To accept "
                           "the loss, create an account and restart the nodes.";
static const char OTHER[] = "Redis holds another store, not the one that this node served: correct --redis. If this "
                            "store is meant, restart the nodes.";
static const char DEMOTED[] = "Redis has become a replica: point --redis at the master.";
static const char NEWER[] = "The store was written by a newer chatelaine, whose records this node may misread: upgrade "
                            "this node, or restore the backup made before the upgrade.";
static const char COPYING[] =
    "A copy into this store is under way, or was interrupted: wait until 'chatelaine store copy' "
    "is done, or run it again.";
static const char BEHIND[] = "Redis has lost changes that this node acknowledged: the node looks what it lacks.";
static const char MISSING[] = "Redis has lost changes that nodes acknowledged: they are being repeated.";
static const char UNSUSPENDED[] = "Redis has lost suspensions of accounts: the node is repeating them.";

enum { LAYOUT_BYTES = 160, MOVED_BYTES = IDENTITY_PLACE_BYTES + 96 };

struct identity {
    const struct lease_settings *settings;
    struct gathering *gathering;
    struct suspensions *suspensions;
    bool is_node;                        /* a member, which waits for the first account; commands create it */
    char id[STORE_ID_CHARS + 1];         /* of the known store; empty: none yet */
    char offered[STORE_ID_CHARS + 1];    /* for a store that has none */
    char run_id[REDIS_RUN_ID_CHARS + 1]; /* of the Redis last found to hold that store */
    const char *strange;                 /* why this Redis decides nothing; NULL: it holds our store */
    uint64_t times_trusted;              /* a Redis that was not trusted right before */
    uint64_t suspensions_when_asked;     /* the version known when identity_ask() ran */
    char layout[LAYOUT_BYTES];           /* why the store's partitions are others than ours */
    char moved[MOVED_BYTES];             /* where the store has moved to, as a sentence */
};

struct identity *identity_create(const struct lease_settings *settings, struct gathering *gathering,
                                 struct suspensions *suspensions)
{
    struct identity *identity = mem_alloc(sizeof *identity);

    identity->settings = settings;
    identity->gathering = gathering;
    identity->suspensions = suspensions;
    random_hex(identity->offered, sizeof identity->offered);
    return identity;
}

void identity_destroy(struct identity *identity)
{
    free(identity);
}

void identity_set_node(struct identity *identity, bool is_node)
{
    identity->is_node = is_node;
}

const char *identity_known(const struct identity *identity)
{
    return identity->id;
}

struct text identity_offered(const struct identity *identity)
{
    return text_of(identity->offered);
}

/* Verdicts */

/* Dropping the links ends everything decided before: the membership with its lease, and all pending calls. */
static void estrange(struct identity *identity, const char *why)
{
    bool was_trusted = identity->run_id[0] != '\0';

    if (identity->strange != why && (why == EMPTY || why == LOST || why == OTHER || why == DEMOTED || why == NEWER ||
                                     why == COPYING || why == UNSUSPENDED || why == BEHIND || why == MISSING ||
                                     why == identity->layout || (why == identity->moved && identity->is_node)))
        LOG(why == EMPTY ? LOG_WARN : LOG_ERROR, "Redis is not trusted: requests are answered 503", log_str("why", why),
            log_partition(identity->settings->prefix));
    identity->strange = why;
    identity->run_id[0] = '\0';
    if (was_trusted)
        redis_group_renew_others(identity->settings->group, "", "this Redis is no longer trusted");
    identity->settings->on_doubt(identity->settings->arg);
}

/* Not yet, but nothing is wrong: links and leases stay. */
static void hold_back(struct identity *identity, const char *why)
{
    identity->strange = why;
    identity->run_id[0] = '\0';
}

static void trust(struct identity *identity)
{
    identity->times_trusted += !identity_may_decide(identity);
    if (identity->strange)
        LOG(LOG_INFO, "Redis holds the store again", log_str("store", identity->id),
            log_partition(identity->settings->prefix));
    identity->strange = NULL;
    snprintf(identity->run_id, sizeof identity->run_id, "%s", redis_link_run_id(identity->settings->changes));
}

/* Commands accept an empty store, because they create the first account. */
static bool is_ours(const struct identity *identity, struct text id)
{
    return identity->id[0] ? text_equal(id, text_of(identity->id)) : id.len > 0 || !identity->is_node;
}

bool identity_found(struct identity *identity, struct text id)
{
    if (is_ours(identity, id) || !RULE(RULE_STORE_ID))
        return true;
    estrange(identity, identity->id[0] == '\0' ? EMPTY : id.len == 0 ? LOST : OTHER);
    return false;
}

/* A Redis that is not trusted yet is looked at anyway. */
static bool is_trusted(const struct identity *identity)
{
    return identity->is_node && RULE(RULE_REASSERT) && identity_may_decide(identity);
}

void identity_behind(struct identity *identity)
{
    if (is_trusted(identity))
        estrange(identity, BEHIND);
}

void identity_misses(struct identity *identity)
{
    if (is_trusted(identity))
        estrange(identity, MISSING);
}

void identity_demoted(struct identity *identity)
{
    if (RULE(RULE_RUN_ID))
        estrange(identity, DEMOTED);
}

void identity_outdated(struct identity *identity, bool is_copied_into)
{
    estrange(identity, is_copied_into ? COPYING : NEWER);
}

void identity_moved(struct identity *identity, struct text place)
{
    struct buf out = BUF_OVER(identity->moved, sizeof identity->moved - 1);

    buf_append_str(&out, "This store has moved to ");
    buf_append_printable(&out, place.len < IDENTITY_PLACE_BYTES ? place : TEXT("another place"));
    buf_append_str(&out, ": give nodes and commands that address.");
    identity->moved[out.len] = '\0';
    estrange(identity, identity->moved);
}

void identity_other_layout(struct identity *identity, int64_t partitions, unsigned expected)
{
    if (partitions == (int64_t)expected)
        snprintf(identity->layout, sizeof identity->layout,
                 "The names of the store's partitions were mixed up: restore the data as it was.");
    else
        snprintf(identity->layout, sizeof identity->layout,
                 "The store has %lld partition%s, not %u, and keeps them for ever: set --partitions %lld.",
                 (long long)partitions, partitions == 1 ? "" : "s", expected, (long long)partitions);
    estrange(identity, identity->layout);
}

const char *identity_strange(const struct identity *identity)
{
    return identity->strange;
}

bool identity_is_empty(const struct identity *identity)
{
    return identity->strange == EMPTY;
}

bool identity_may_decide(const struct identity *identity)
{
    const char *run_id = redis_link_run_id(identity->settings->reads);

    return !identity->strange && run_id[0] && (strcmp(run_id, identity->run_id) == 0 || !RULE(RULE_RUN_ID));
}

uint64_t identity_trust(const struct identity *identity)
{
    if (!identity->is_node)
        return 1;
    return identity_may_decide(identity) ? identity->times_trusted : 0;
}

/* Reading the store's hash */

/* The store's id, and the one that it had before 'store upgrade'; how many endings it misses; its era (lease/gather.h);
 * the version of the suspended accounts; where the store has moved to. */
struct hash_read {
    struct text id, former, era, moved;
    uint64_t missing, suspensions;
};

static bool read_id(const struct redis_reply *reply, struct text *ret_id)
{
    return reply_text_or_nil(reply, ret_id) && (ret_id->len == 0 || ret_id->len == STORE_ID_CHARS);
}

/* 0 if there is none. */
static bool read_number(const struct redis_reply *reply, uint64_t *ret_number)
{
    struct text number;

    *ret_number = 0;
    return reply_text_or_nil(reply, &number) && (number.len == 0 || text_to_u64(number, INT64_MAX, ret_number));
}

static bool read_hash(const struct identity *identity, const struct redis_reply *reply, struct hash_read *ret_hash)
{
    if (read_id(reply_at(reply, 0), &ret_hash->id) && read_number(reply_at(reply, 1), &ret_hash->missing) &&
        reply_text_or_nil(reply_at(reply, 2), &ret_hash->era) && read_id(reply_at(reply, 3), &ret_hash->former) &&
        read_number(reply_at(reply, 4), &ret_hash->suspensions) &&
        reply_text_or_nil(reply_at(reply, 5), &ret_hash->moved))
        return true;
    if (reply->type != REPLY_ERROR)
        identity->settings->on_malformed(identity->settings->arg, "store");
    return false;
}

/* A store that was upgraded has a new id, so that older nodes refuse it. A node that can read it goes on. */
static bool find_hash(struct identity *identity, const struct hash_read *hash)
{
    if (hash->moved.len > 0) {
        identity_moved(identity, hash->moved);
        return false;
    }
    if (hash->id.len > 0 && hash->former.len > 0 && text_equal(hash->former, text_of(identity->id))) {
        snprintf(identity->id, sizeof identity->id, "%.*s", TEXT_ARG(hash->id));
        LOG(LOG_INFO, "the store was upgraded and has a new id", log_str("store", identity->id));
    }
    return identity_found(identity, hash->id);
}

static void ask_hash(const struct identity *identity, struct redis_link *link, redis_done *done, void *arg)
{
    char name[REDIS_PREFIX_MAX_BYTES + sizeof "store"];

    snprintf(name, sizeof name, "%sstore", identity->settings->prefix);
    const struct text argv[] = {
        TEXT("HMGET"), text_of(name),  TEXT("id"),          TEXT("missing"),
        TEXT("era"),   TEXT("former"), TEXT("suspensions"), TEXT("moved"),
    };
    redis_link_call(link, sizeof argv / sizeof *argv, argv, done, arg);
}

void identity_ask(struct identity *identity, redis_done *done, void *arg)
{
    identity->suspensions_when_asked = suspensions_version(identity->suspensions);
    ask_hash(identity, identity->settings->changes, done, arg);
}

/* What is left once the store is ours: whether it has lost something. */
static const char *lacks(struct identity *identity, const struct hash_read *hash)
{
    if (!identity->is_node)
        return NULL;
    if (hash->suspensions < identity->suspensions_when_asked && RULE(RULE_REASSERT))
        return UNSUSPENDED;
    return gathering_look(identity->gathering, &(struct store_names){hash->id, hash->former}, hash->era, hash->missing);
}

bool identity_answered(struct identity *identity, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct hash_read hash;

    if (outcome != REDIS_REPLIED || !read_hash(identity, reply, &hash))
        return false;
    if (!identity->id[0] && hash.moved.len == 0)
        snprintf(identity->id, sizeof identity->id, "%.*s", TEXT_ARG(hash.id));
    if (!find_hash(identity, &hash))
        return true;

    const char *why = lacks(identity, &hash);
    if (!why) {
        trust(identity);
    } else if (why == UNSUSPENDED) {
        estrange(identity, why);
        if (redis_link_is_ready(identity->settings->changes))
            suspensions_tell_again(identity->suspensions);
    } else {
        hold_back(identity, why);
    }
    return true;
}

/* The witness: ROLE and the store's hash, in front of each batch of reads and in the same write. Its replies come
 * first, so no reply from a replica or from another store is taken for ours. Without it a node would go on deciding by
 * such a Redis until a heartbeat or an examination noticed. The witness runs after every check of its batch began. If
 * Redis is demoted between the witness and the reads, it still was the master when those checks began. */
struct witness {
    struct identity *identity;
    bool is_of_checks; /* on the `reads` link */
};

static void on_role(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct text role;

    if (outcome == REDIS_REPLIED && reply_text(reply_at(reply, 0), &role) && !text_equal(role, TEXT("master")))
        identity_demoted(arg);
}

static void on_hash(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct witness witness = *(struct witness *)arg;
    struct hash_read hash;

    free(arg);
    bool is_ours =
        outcome == REDIS_REPLIED && read_hash(witness.identity, reply, &hash) && find_hash(witness.identity, &hash);
    if (is_ours && hash.missing > 0)
        identity_misses(witness.identity);
    if (witness.is_of_checks)
        suspensions_on_batch(witness.identity->suspensions, is_ours ? hash.suspensions : SUSPENSIONS_UNKNOWN);
}

void identity_witness(struct identity *identity, struct redis_link *link)
{
    struct witness *witness;

    if (!redis_link_begins_batch(link))
        return;
    witness = mem_alloc(sizeof *witness);
    *witness = (struct witness){identity, link == identity->settings->reads};
    if (witness->is_of_checks)
        suspensions_ask(identity->suspensions);
    redis_link_call(link, 1, (struct text[]){TEXT("ROLE")}, on_role, identity);
    ask_hash(identity, link, on_hash, witness);
}

/* Which store this is (rule 11): the id that its first account brought, and the one process of Redis that all links of
 * a node speak to. A node that knew a store decides nothing by another one, by an emptied one, or by a replica. */
#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "base/random.h"
#include "core/lease_rules.h"
#include "core/limits.h"
#include "store_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char EMPTY[] = "The store is empty: make the first account with 'chatelaine account create', or point "
                            "--redis and --prefix at the store that has one.";
static const char LOST[] = "Redis has lost the store that this node knew, it is empty now: bring the data back; or, if "
                           "the loss is accepted, start the nodes again.";
static const char OTHER[] =
    "Redis holds another store than the one that this node knew: point --redis at that one; or, "
    "if the other is meant, start the nodes again.";
static const char DEMOTED[] = "Redis has become a replica: point --redis at the primary.";
static const char ELSEWHERE[] = "another connection reached another server: Redis was started again, or the address "
                                "leads to several";

void identity_init(struct store *store)
{
    uint8_t bytes[STORE_ID_CHARS / 2];
    struct buf out;

    random_secret(bytes, sizeof bytes);
    buf_init_fixed(&out, store->identity.offered, STORE_ID_CHARS);
    encode_hex(&out, bytes, sizeof bytes);
    CHECK(!out.failed);
}

struct text store_offered_id(const struct store *store)
{
    return text_of(store->identity.offered);
}

/* Links */

void store_add_link(struct store *store, struct redis_link *link)
{
    struct identity *identity = &store->identity;

    CHECK(identity->link_count < STORE_LINKS_MAX);
    identity->links[identity->link_count++] = link;
}

void store_remove_link(struct store *store, const struct redis_link *link)
{
    struct identity *identity = &store->identity;

    for (size_t i = 0; i < identity->link_count; i++)
        if (identity->links[i] == link)
            identity->links[i--] = identity->links[--identity->link_count];
}

/* Those that speak to another process than run_id. */
static void renew_others(struct store *store, const char *run_id, const char *why)
{
    struct identity *identity = &store->identity;

    for (size_t i = 0; i < identity->link_count; i++)
        if (redis_link_is_ready(identity->links[i]) && strcmp(redis_link_run_id(identity->links[i]), run_id) != 0)
            redis_link_renew(identity->links[i], why);
}

/* Nobody can tell which of two servers is the right one. Where the address leads to one alone, all links meet there. */
void store_link_is_up(struct store *store, const struct redis_link *link)
{
    if (RULE(RULE_RUN_ID))
        renew_others(store, redis_link_run_id(link), ELSEWHERE);
}

/* The verdict */

/* What was decided before ends with the links: the session with its lease, and all that is under way. */
static void estrange(struct store *store, const char *why)
{
    struct identity *identity = &store->identity;
    bool was_trusted = identity->run_id[0] != '\0';

    if (identity->strange != why && (why == EMPTY || why == LOST || why == OTHER || why == DEMOTED))
        LOG(why == EMPTY ? LOG_WARN : LOG_ERROR, "nothing is decided by what redis holds: requests are answered 503",
            log_str("why", why));
    identity->strange = why;
    identity->run_id[0] = '\0';
    if (was_trusted)
        renew_others(store, "", "it is not what it was");
    store_look_again(store);
}

static void trust(struct store *store)
{
    struct identity *identity = &store->identity;

    if (identity->strange)
        LOG(LOG_INFO, "redis holds the store again", log_str("store", identity->id));
    identity->strange = NULL;
    snprintf(identity->run_id, sizeof identity->run_id, "%s", redis_link_run_id(store->changes));
}

/* A command may find an empty store: it makes the first account. */
static bool is_ours(const struct store *store, struct text id)
{
    const char *known = store->identity.id;

    return known[0] ? text_equal(id, text_of(known)) : id.len > 0 || !store->session;
}

bool identity_found(struct store *store, struct text id)
{
    struct identity *identity = &store->identity;

    if (is_ours(store, id) || !RULE(RULE_STORE_ID))
        return true;
    estrange(store, identity->id[0] == '\0' ? EMPTY : id.len == 0 ? LOST : OTHER);
    return false;
}

bool identity_holds(struct store *store, uint64_t held, uint64_t answered)
{
    const char *why = promises_compare(store, held, answered);

    if (why)
        estrange(store, why);
    return !why;
}

void identity_demoted(struct store *store)
{
    if (RULE(RULE_RUN_ID))
        estrange(store, DEMOTED);
}

bool store_is_empty(const struct store *store)
{
    return store->identity.strange == EMPTY;
}

bool identity_may_decide(const struct store *store)
{
    const struct identity *identity = &store->identity;
    const char *run_id = redis_link_run_id(store->reads);

    return !identity->strange && run_id[0] && (strcmp(run_id, identity->run_id) == 0 || !RULE(RULE_RUN_ID));
}

/* Looking */

/* What the store's hash says: its id, what it holds of this node's changes, and where their loss was accepted. */
struct hash_read {
    struct text id, accepted;
    uint64_t held;
};

static bool read_hash(struct store *store, const struct redis_reply *reply, struct hash_read *ret_hash)
{
    struct text held;

    if (reply_text_or_nil(reply_at(reply, 0), &ret_hash->id) &&
        (ret_hash->id.len == 0 || ret_hash->id.len == STORE_ID_CHARS) && reply_text_or_nil(reply_at(reply, 1), &held) &&
        reply_text_or_nil(reply_at(reply, 2), &ret_hash->accepted)) {
        ret_hash->held = 0;
        if (held.len == 0 || text_to_u64(held, INT64_MAX, &ret_hash->held))
            return true;
    }
    store_malformed(store, "store");
    return false;
}

static void ask_hash(struct store *store, struct redis_link *link, redis_done *done, void *arg)
{
    char name[REDIS_PREFIX_MAX_BYTES + sizeof "store"];

    snprintf(name, sizeof name, "%sstore", store->prefix);
    redis_link_call(
        link, 5,
        (struct text[]){TEXT("HMGET"), text_of(name), TEXT("id"), text_of(promises_maker(store)), TEXT("accepted")},
        done, arg);
}

void identity_ask(struct store *store, redis_done *done)
{
    ask_hash(store, store->changes, done, store);
}

bool identity_answered(struct store *store, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct identity *identity = &store->identity;
    struct hash_read hash;

    if (outcome != REDIS_REPLIED || !read_hash(store, reply, &hash))
        return false;
    if (!identity->id[0])
        snprintf(identity->id, sizeof identity->id, "%.*s", TEXT_ARG(hash.id));
    if (!identity_found(store, hash.id))
        return true;
    if (identity_holds(store, hash.held, promises_answered(store)))
        trust(store);
    else if (store->changes_up)
        promises_tell_again(store, hash.held, text_equal(hash.accepted, text_of(redis_link_run_id(store->changes))));
    return true;
}

/* The witness: what stands in front of each batch of reads, in the same write. Its answers come first, so that nothing
 * that Redis read as a replica, or in another store, is taken for ours: without it a node would go on deciding by such
 * a Redis until a heartbeat or an examination noticed. It runs after every check of its batch began; a Redis that is
 * demoted between it and the reads behind it was the master when those checks began. */
struct witness {
    struct store *store;
    uint64_t answered; /* when it was sent */
};

static void witness_role(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct text role;

    if (outcome == REDIS_REPLIED && reply_text(reply_at(reply, 0), &role) && !text_equal(role, TEXT("master")))
        identity_demoted(arg);
}

static void witness_hash(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct witness witness = *(struct witness *)arg;
    struct hash_read hash;

    free(arg);
    if (outcome == REDIS_REPLIED && read_hash(witness.store, reply, &hash) && identity_found(witness.store, hash.id))
        (void)identity_holds(witness.store, hash.held, witness.answered);
}

void store_witness(struct store *store, struct redis_link *link)
{
    struct witness *witness;

    if (!redis_link_begins_batch(link))
        return;
    witness = mem_alloc(sizeof *witness);
    *witness = (struct witness){store, promises_answered(store)};
    redis_link_call(link, 1, (struct text[]){TEXT("ROLE")}, witness_role, store);
    ask_hash(store, link, witness_hash, witness);
}

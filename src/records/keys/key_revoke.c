#include "key_revoke.h"

#include "base/check.h"
#include "base/mem.h"
#include "core/lease_rules.h"
#include "core/limits.h"
#include "key_parts.h"
#include "effect_notes.h"
#include "key_reply.h"
#include "lease/lease.h"
#include "engine/script_words.h"
#include <stdlib.h>
#include <string.h>

enum {
    CREDENTIAL_TEXT_BYTES = 192,
    KEPT_BYTES = 4 * ID_TEXT_BYTES + CLIENT_REQUEST_ID_MAX_BYTES + CREDENTIAL_TEXT_BYTES,
    /* In the script's reply. */
    LEASE_MAX_AT = 0,
    REGISTRY_AT = 1,
    KEYS_AT = 2, /* one for each key */
    /* Messages of groups that may be under way together, counted once for each node. A message costs Redis about 10 µs
     * for each node, which is what groups save; to wait for a group costs a revocation up to a reply of Redis more. */
    MESSAGES_UNDER_WAY = 64,
};

/* One that waits, or is under way in a group. */
struct revoke_call {
    struct list node;
    struct text argv[REVOCATION_ARGS]; /* in kept */
    char kept[KEPT_BYTES];
    struct id id;
    uint64_t asked_ms;
    key_found *done;
    void *arg;
    enum store_result result;
    struct key_record key; /* of STORE_OK */
    bool is_again;         /* likewise: it was revoked before */
};

struct key_revocations {
    struct store *store;
    uv_idle_t idle;      /* sends what waits in the next turn, when all of this turn have come */
    struct list waiting; /* struct revoke_call */
    size_t under_way;    /* groups that Redis has not replied to yet; none: nothing waits */
    size_t nodes;        /* in the registry when it last replied; 0: never yet */
    void (*closed)(void *arg);
    void *closed_arg;
};

struct group {
    struct key_revocations *kept_by;
    struct barrier *barrier;
    struct barrier_tally tally;
    struct list members; /* struct revoke_call, in the order of the script's arguments */
};

static void group_replied(void *arg);
static void group_called(void *arg, enum store_result result, const struct redis_reply *reply);
static void group_over(void *arg, bool is_over);

static void *revocations_create(struct store *store)
{
    struct key_revocations *revocations = mem_alloc(sizeof *revocations);

    revocations->store = store;
    CHECK(uv_idle_init(store_loop(store), &revocations->idle) == 0);
    revocations->idle.data = revocations;
    list_init(&revocations->waiting);
    return revocations;
}

static void on_idle_closed(uv_handle_t *handle)
{
    struct key_revocations *revocations = handle->data;
    void (*closed)(void *arg) = revocations->closed;
    void *arg = revocations->closed_arg;

    CHECK(list_empty(&revocations->waiting) && revocations->under_way == 0);
    free(revocations);
    closed(arg);
}

static void revocations_close(void *made, void (*closed)(void *arg), void *arg)
{
    struct key_revocations *revocations = made;

    revocations->closed = closed;
    revocations->closed_arg = arg;
    uv_close((uv_handle_t *)&revocations->idle, on_idle_closed);
}

const struct store_part KEY_REVOCATIONS = {.create = revocations_create, .close = revocations_close};

/* Replies */

/* The result that the script gives a key. STORE_UNKNOWN: its record is malformed, perhaps after it was marked; or the
 * reply is. */
static enum store_result read_result(struct store *store, const struct redis_reply *item)
{
    enum store_result result = STORE_UNKNOWN;
    struct text word, why;

    if (!reply_text(reply_at(item, 0), &word))
        store_malformed(store, "revocation");
    else if (text_equal(word, TEXT("failed")) && reply_text(reply_at(item, 1), &why))
        store_note_error(store, reply_caught_error_shown(why));
    else if (!script_result_read(word, &result))
        store_malformed(store, "revocation");
    return result;
}

const struct redis_reply *revocation_reply(const struct redis_reply *reply, size_t index)
{
    return reply_at(reply, KEYS_AT + index);
}

enum store_result revocation_read(struct store *store, const struct redis_reply *reply, size_t index,
                                  struct key_record *ret_key, bool *ret_again)
{
    const struct redis_reply *item = reply_at(reply, KEYS_AT + index);
    enum store_result result = read_result(store, item);
    int64_t again = 0;

    if (result == STORE_OK &&
        (!key_reply_decode(reply_at(item, 1), ret_key) || !reply_integer(reply_at(item, 2), &again))) {
        store_malformed(store, "revocation");
        result = STORE_UNKNOWN;
    }
    *ret_again = again != 0;
    return result;
}

void args_begin_revocations(struct script_args *args, const struct store *store, bool is_discard, struct text member,
                            struct text barrier)
{
    args_begin(args);
    args_add_int(args, store_audit_max(store));
    args_add(args, is_discard ? TEXT("1") : TEXT("0"));
    args_add(args, member);
    args_add(args, barrier);
}

void args_add_revocation(struct script_args *args, const struct key_view *view, const struct id *id,
                         const struct audit_source *source)
{
    args_add_view(args, view, id);
    args_add(args, source->actor);
    args_add(args, source->ip);
    args_add(args, source->request_id);
    args_add_credential(args, &source->credential);
}

enum store_result revocation_result(struct store *store, enum store_result result, const struct redis_reply *reply)
{
    return result == STORE_OK || result == STORE_REFUSED ? read_result(store, reply_at(reply, KEYS_AT)) : result;
}

bool revocation_wait(struct store *store, struct barrier *barrier, const struct redis_reply *reply,
                     void (*done)(void *arg, bool is_over), void *arg)
{
    int64_t lease_max_ms;

    if (reply_integer(reply_at(reply, LEASE_MAX_AT), &lease_max_ms) &&
        barrier_wait(barrier, lease_max_ms, reply_at(reply, REGISTRY_AT), done, arg))
        return true;
    store_malformed(store, "revocation");
    barrier_drop(barrier);
    return false;
}

/* Groups */

static void finish_all(struct list *members)
{
    struct list *node;

    while ((node = list_first(members))) {
        struct revoke_call *revocation = LIST_ENTRY(node, struct revoke_call, node);

        list_remove(node);
        revocation->done(revocation->arg, revocation->result, revocation->result == STORE_OK ? &revocation->key : NULL);
        free(revocation);
    }
}

static void set_results(struct list *members, enum store_result result)
{
    for (struct list *node = members->next; node != members; node = node->next)
        LIST_ENTRY(node, struct revoke_call, node)->result = result;
}

/* Those that have waited for a timeout while Redis did not reply are not sent any more: their callers have waited long
 * enough, and nothing was done. So nobody waits for more than two timeouts and the barrier. */
static bool has_waited_too_long(const struct key_revocations *revocations, const struct revoke_call *revocation)
{
    return uv_now(store_loop(revocations->store)) - revocation->asked_ms >=
           store_limits(revocations->store)->timeout_ms;
}

static void take_members(struct key_revocations *revocations, struct list *ret_members, struct list *ret_late)
{
    struct list *node;

    list_init(ret_members);
    list_init(ret_late);
    for (size_t count = 0; count < REVOKED_TOGETHER_MAX && (node = list_first(&revocations->waiting));) {
        bool is_late = has_waited_too_long(revocations, LIST_ENTRY(node, struct revoke_call, node));

        list_remove(node);
        list_append(is_late ? ret_late : ret_members, node);
        count += !is_late;
    }
}

static void group_send(struct group *group)
{
    struct store *store = group->kept_by->store;
    struct text argv[REVOCATION_HEAD_ARGS + REVOKED_TOGETHER_MAX * REVOCATION_ARGS];
    struct script_args head;
    size_t argc = REVOCATION_HEAD_ARGS;

    args_begin_revocations(&head, store, false, barrier_member(group->barrier), barrier_name(group->barrier));
    memcpy(argv, head.argv, REVOCATION_HEAD_ARGS * sizeof *argv);
    for (struct list *node = group->members.next; node != &group->members; node = node->next) {
        memcpy(argv + argc, LIST_ENTRY(node, struct revoke_call, node)->argv, REVOCATION_ARGS * sizeof *argv);
        argc += REVOCATION_ARGS;
    }
    store_call_change(store, SCRIPT_key_revoke, argc, argv, group_replied, group_called, group);
}

static bool may_send(const struct key_revocations *revocations)
{
    size_t most = revocations->nodes > 0 ? 1 + MESSAGES_UNDER_WAY / revocations->nodes : 1;

    return !list_empty(&revocations->waiting) && revocations->under_way < most;
}

static void send_group(struct key_revocations *revocations)
{
    struct group *group = mem_alloc(sizeof *group);
    struct list late;

    take_members(revocations, &group->members, &late);
    if (list_empty(&group->members)) {
        free(group);
    } else {
        group->kept_by = revocations;
        group->barrier = barrier_begin(lease_barriers(store_lease(revocations->store)));
        barrier_tell(group->barrier, &group->tally);
        revocations->under_way++;
        group_send(group);
    }
    set_results(&late, STORE_UNAVAILABLE);
    finish_all(&late);
}

static void send_waiting(struct key_revocations *revocations)
{
    while (may_send(revocations))
        send_group(revocations);
}

static void on_idle(uv_idle_t *idle)
{
    CHECK(uv_idle_stop(idle) == 0);
    send_waiting(idle->data);
}

static void group_replied(void *arg)
{
    struct key_revocations *revocations = ((struct group *)arg)->kept_by;

    revocations->under_way--;
    send_waiting(revocations);
}

/* Reads each member's result, and keeps what was revoked for repeating (rule 13). Moves those to *settled that need not
 * wait for the barrier. */
static void read_members(struct group *group, enum store_result result, const struct redis_reply *reply,
                         struct list *settled)
{
    struct store *store = group->kept_by->store;
    bool has_replies = result == STORE_OK || result == STORE_REFUSED;
    struct heard_ending endings[REVOKED_TOGETHER_MAX];
    struct list *node, *next;
    size_t index = 0, kept = 0;

    list_init(settled);
    for (node = group->members.next; node != &group->members; node = next) {
        struct revoke_call *revocation = LIST_ENTRY(node, struct revoke_call, node);

        next = node->next;
        revocation->result =
            has_replies ? revocation_read(store, reply, index++, &revocation->key, &revocation->is_again) : result;
        if (revocation->result == STORE_OK)
            endings[kept++] = ending_of_key(&revocation->key);
        if (revocation->result == STORE_OK && (!revocation->is_again || RULE(RULE_AGAIN)))
            continue;
        list_remove(node);
        list_append(settled, node);
    }
    store_keep_endings(store, endings, kept);
}

/* A member has two items: its name, and what it holds. */
static void count_nodes(struct key_revocations *revocations, const struct redis_reply *registry)
{
    revocations->nodes = registry && registry->count > 2 ? registry->count / 2 : 1;
}

/* The keys stay marked even if the barrier fails. Then the results are STORE_UNKNOWN. */
static void group_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct group *group = arg;
    struct list settled;

    if (result == STORE_OK)
        count_nodes(group->kept_by, reply_at(reply, REGISTRY_AT));
    read_members(group, result, reply, &settled);
    if (list_empty(&group->members)) {
        barrier_drop(group->barrier);
        free(group);
    } else if (!revocation_wait(group->kept_by->store, group->barrier, reply, group_over, group)) {
        group_over(group, false);
    }
    finish_all(&settled);
}

/* All of them were revoked, and none is left of those that were not. */
static void note_endings(const struct group *group)
{
    struct key_ended ended[REVOKED_TOGETHER_MAX];
    size_t count = 0;

    for (const struct list *node = group->members.next; node != &group->members; node = node->next) {
        const struct revoke_call *revocation = LIST_ENTRY(node, struct revoke_call, node);

        ended[count++] = (struct key_ended){&revocation->key.id, &revocation->key.account, revocation->key.revoked_ms,
                                            revocation->is_again};
    }
    effect_notes_add(group->kept_by->store, ended, count, &group->tally);
}

static void group_over(void *arg, bool is_over)
{
    struct group *group = arg;

    if (is_over)
        note_endings(group);
    else
        set_results(&group->members, STORE_UNKNOWN);
    finish_all(&group->members);
    free(group);
}

void key_store_revoke(struct store *store, const struct key_view *view, const struct id *id,
                      const struct audit_source *source, key_found *done, void *arg)
{
    struct key_revocations *revocations = store_part(store, &KEY_REVOCATIONS);
    struct revoke_call *revocation = mem_alloc(sizeof *revocation);
    struct script_args args;
    struct buf kept;

    revocation->id = *id;
    revocation->asked_ms = uv_now(store_loop(store));
    revocation->done = done;
    revocation->arg = arg;
    args_begin(&args);
    args_add_revocation(&args, view, id, source);
    buf_init_fixed(&kept, revocation->kept, sizeof revocation->kept);
    for (size_t i = 0; i < REVOCATION_ARGS; i++)
        revocation->argv[i] = text_keep(&kept, args.argv[i]);
    CHECK(args.count == REVOCATION_ARGS && !kept.failed);
    list_append(&revocations->waiting, &revocation->node);
    if (revocations->under_way == 0)
        send_waiting(revocations);
    else if (may_send(revocations))
        CHECK(uv_idle_start(&revocations->idle, on_idle) == 0);
}

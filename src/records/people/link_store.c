#include "records/link_store.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "base/secure.h"
#include "email_claim.h"
#include "person_read.h"
#include "records/seal_store.h"
#include "throttle.h"
#include "token_search.h"
#include "engine/verb.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seals */

enum { LINK_PARTS = 9 };

struct link_seal {
    struct record_parts record;
    struct text parts[LINK_PARTS];
    char storage[48]; /* of the times */
};

static void link_seal_fill(struct link_seal *seal, const struct link_record *link)
{
    struct buf times;

    buf_init_fixed(&times, seal->storage, sizeof seal->storage);
    seal->parts[0] = (struct text){(const char *)link->digest, sizeof link->digest};
    seal->parts[1] = id_text(&link->id);
    seal->parts[2] = id_text(&link->account);
    seal->parts[3] = text_of(link->email);
    seal->parts[4] = role_text(link->role);
    seal->parts[5] = id_text(&link->user);
    seal->parts[6] = text_of(link->by);
    seal->parts[7] = text_keep_u64(&times, (uint64_t)link->created_ms);
    seal->parts[8] = text_keep_u64(&times, (uint64_t)link->expires_ms);
    seal->record = (struct record_parts){RECORD_LINK, LINK_PARTS, seal->parts};
}

static void link_seal(struct store *store, struct link_record *link, const struct audit_source *source)
{
    struct link_seal seal;

    snprintf(link->by, sizeof link->by, "%.*s", TEXT_ARG(source->actor));
    link->created_ms = store_clock_ms(store);
    link->expires_ms = link->created_ms + LINK_LIFETIME_MS;
    link_seal_fill(&seal, link);
    record_mac_make(store_keyring(store), &seal.record, &link->mac);
}

static enum store_result link_believe(struct store *store, const struct link_record *link)
{
    struct link_seal seal;

    if (link->mac.text[0] == '\0') /* no version made links without a seal */
        return store_altered(store, "link", id_text(&link->id));
    link_seal_fill(&seal, link);
    return store_believe(store, &seal.record, text_of(link->mac.text), "link", id_text(&link->id));
}

/* Replies */

static bool value_digest(const struct redis_reply *value, void *ret, size_t size)
{
    struct text hex;

    return reply_text(value, &hex) && decode_hex(hex, ret, size);
}

/* link_reply() in the prelude. `user` is of a reset, and `totp` of a link with which a browser has started. */
static const struct reply_field LINK_FIELDS[] = {
    REPLY_FIELD("digest", value_digest, link_record, digest),
    REPLY_ID("id", ID_INVITATION, link_record, id),
    REPLY_ID("account", ID_ACCOUNT, link_record, account),
    REPLY_FIELD("account_name", value_chars, link_record, account_name),
    REPLY_FIELD("email", value_chars, link_record, email),
    REPLY_FIELD("role", value_role, link_record, role),
    REPLY_ROW("user", true, value_id, link_record, user, ID_USER),
    REPLY_FIELD("by", value_chars, link_record, by),
    REPLY_FIELD("created", value_time, link_record, created_ms),
    REPLY_FIELD("expires", value_time, link_record, expires_ms),
    REPLY_FIELD_OR_NONE("mac", value_chars, link_record, mac.text),
    REPLY_FIELD_OR_NONE("totp", value_bytes, link_record, totp_sealed),
};

static bool link_read(const struct redis_reply *reply, struct link_record *ret_link)
{
    *ret_link = (struct link_record){0};
    ret_link->has_totp = reply_named(reply, TEXT("totp"));
    return REPLY_RECORD(reply, LINK_FIELDS, ret_link);
}

static enum store_result link_read_believed(struct store *store, const struct redis_reply *reply, void *ret_link)
{
    if (link_read(reply, ret_link))
        return link_believe(store, ret_link);
    store_malformed(store, "link");
    return STORE_UNAVAILABLE;
}

/* New links: the clock first, whose time is sealed. */

struct making {
    struct store *store; /* of the account */
    struct link_record *link;
    struct kept_source kept_source;
    store_limited *invited; /* of an invitation */
    store_counted *reset;   /* of a reset */
    void *arg;
};

static void invite_checked(void *arg, enum store_result result);
static void invite_send(void *arg);

void link_store_invite(struct partitions *partitions, struct link_record *link, const struct audit_source *source,
                       store_limited *done, void *arg)
{
    struct making *making = mem_alloc(sizeof *making);
    struct store *store = partition_of_account(partitions, &link->account);

    *making = (struct making){.store = store, .link = link, .invited = done, .arg = arg};
    source_keep(&making->kept_source, source);
    email_check_free(partitions, text_of(link->email), invite_checked, making);
}

static void invite_checked(void *arg, enum store_result result)
{
    struct making *making = arg;

    if (result == STORE_OK) {
        store_know_clock(making->store, invite_send, making);
        return;
    }
    making->invited(making->arg, result, 0);
    free(making);
}

static void invite_send(void *arg)
{
    struct making *making = arg;
    struct link_record *link = making->link;
    const struct audit_source *source = &making->kept_source.source;
    struct script_args args;

    link_seal(making->store, link, source);
    args_begin(&args);
    args_add_hex(&args, link->digest, sizeof link->digest);
    args_add(&args, id_text(&link->id));
    args_add(&args, id_text(&link->account));
    args_add(&args, text_of(link->email));
    args_add(&args, role_text(link->role));
    args_add_int(&args, link->created_ms);
    args_add_int(&args, link->expires_ms);
    args_add(&args, text_of(link->mac.text));
    args_add_actor(&args, making->store, source);
    args_add_int(&args, store_limits(making->store)->people_max);
    args_add_int(&args, store_limits(making->store)->changes_per_minute);
    verb_call_limited(making->store, SCRIPT_link_create, SCRIPT_CHANGES, &args, making->invited, making->arg);
    free(making);
}

static void links_done(verb_done *done, void *arg, enum store_result result, const struct record_list *list)
{
    ((links_listed *)done)(arg, result, list->records, list->count, list->has_more);
}

static const struct list_form LINKS = {"list of invitations", true, sizeof(struct link_record), link_read_believed,
                                       links_done};

void link_store_list(struct store *store, const struct id *account, unsigned limit, const struct id *behind,
                     links_listed *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(account));
    args_add_int(&args, limit);
    args_add(&args, id_text(behind));
    verb_list(store, SCRIPT_link_list, &args, &LINKS, limit, (verb_done *)done, arg);
}

/* Ends of something: answered once no replaced Redis can be asked any more. */

void link_store_withdraw(struct store *store, const struct id *account, const struct id *id,
                         const struct audit_source *source, store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(account));
    args_add(&args, id_text(id));
    args_add_actor(&args, store, source);
    verb_call_ending(store, SCRIPT_link_withdraw, &args, done, arg);
}

static void reset_send(void *arg)
{
    static const uint8_t NO_TOTP[TOTP_SEALED_BYTES]; /* no master key has sealed this */
    struct making *making = arg;
    struct link_record *link = making->link;
    const struct audit_source *source = &making->kept_source.source;
    struct script_args args;

    link_seal(making->store, link, source);
    args_begin(&args);
    args_add_hex(&args, link->digest, sizeof link->digest);
    args_add(&args, id_text(&link->id));
    args_add(&args, id_text(&link->user));
    args_add(&args, id_text(&link->account));
    args_add_int(&args, link->expires_ms);
    args_add(&args, text_of(link->mac.text));
    args_add_int(&args, link->created_ms);
    args_add(&args, totp_text(NO_TOTP));
    args_add_actor(&args, making->store, source);
    args_add(&args, role_text(link->role));
    verb_call_endings(making->store, SCRIPT_link_reset, &args, making->reset, making->arg);
    free(making);
}

void link_store_reset(struct store *store, struct link_record *link, const struct audit_source *source,
                      store_counted *done, void *arg)
{
    struct making *making = mem_alloc(sizeof *making);

    *making = (struct making){.store = store, .link = link, .reset = done, .arg = arg};
    source_keep(&making->kept_source, source);
    store_know_clock(store, reset_send, making);
}

/* Finding one: the partitions of the code's digests are asked in turn. A wrong code is counted before it is answered,
 * and refused once the address must wait. A right one is never refused: it cannot be guessed, and neighbours share
 * addresses. */

struct find_call {
    const struct partitions *partitions;
    struct token_search search;
    struct text ip_tag;
    link_found *done;
    void *arg;
};

static void find_on(void *arg, enum store_result result);
static void find_called(void *arg, enum store_result result, const struct redis_reply *reply);
static void miss_counted(void *arg, enum store_result result, const struct throttle_verdict *verdict);

void link_store_find(const struct partitions *partitions, const struct token_digests *code, struct text ip_tag,
                     link_found *done, void *arg)
{
    struct find_call *call = mem_alloc(sizeof *call);

    *call = (struct find_call){.partitions = partitions, .ip_tag = ip_tag, .done = done, .arg = arg};
    token_search_begin(&call->search, partitions, code);
    token_search_go_on(&call->search, find_on, call);
}

static void find_finish(struct find_call *call, enum store_result result, const struct link_record *link,
                        uint32_t retry_after_s)
{
    call->done(call->arg, result, link, retry_after_s);
    free(call);
}

static void find_send(struct find_call *call)
{
    struct script_args args;

    args_begin(&args);
    args_add_digests(&args, &call->search.digests);
    store_call_script(call->search.store, SCRIPT_link_find, SCRIPT_READS, args.count, args.argv, find_called, call);
}

static void find_on(void *arg, enum store_result result)
{
    struct find_call *call = arg;

    if (result == STORE_OK)
        find_send(call);
    else if (result == STORE_NOT_FOUND)
        throttle_judge_address(call->partitions, call->ip_tag, THROTTLE_FAIL, miss_counted, call);
    else
        find_finish(call, result, NULL, 0);
}

static void find_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct find_call *call = arg;
    struct link_record link;

    if (result == STORE_NOT_FOUND) {
        token_search_go_on(&call->search, find_on, call);
        return;
    }
    if (result == STORE_OK)
        result = link_read_believed(call->search.store, reply_at(reply, 0), &link);
    find_finish(call, result, result == STORE_OK ? &link : NULL, 0);
    secure_wipe(&link, sizeof link);
}

static void miss_counted(void *arg, enum store_result result, const struct throttle_verdict *verdict)
{
    find_finish(arg, result == STORE_OK ? STORE_NOT_FOUND : result, NULL, verdict->retry_after_s);
}

/* Using one */

static bool opening_read(const struct redis_reply *reply, struct link_opening *ret_opening)
{
    return reply && reply_time(reply_at(reply, 0), &ret_opening->at_ms) &&
           reply_chars(reply_at(reply, 1), ret_opening->network, sizeof ret_opening->network) &&
           reply_chars(reply_at(reply, 2), ret_opening->browser, sizeof ret_opening->browser);
}

static void open_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct link_opening earlier[LINK_OPENINGS_MAX];
    struct link_record link;
    size_t count = 0;

    if (result == STORE_OK)
        result = link_read_believed(asked->store, reply_at(reply, 0), &link);
    if (result == STORE_OK)
        while (count < LINK_OPENINGS_MAX && opening_read(reply_at(reply, count + 1), &earlier[count]))
            count++;
    ((link_opened *)asked->done)(asked->arg, result, result == STORE_OK ? &link : NULL, earlier, count);
    secure_wipe(&link, sizeof link);
}

void link_store_open(struct store *store, const struct link_record *link, const struct link_opening *opening,
                     const struct audit_source *source, link_opened *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, link->digest, sizeof link->digest);
    args_add(&args, text_of(opening->network));
    args_add(&args, text_of(opening->browser));
    args_add_source(&args, store, source);
    verb_ask(store, SCRIPT_link_open, SCRIPT_CHANGES, &args, open_answer, (verb_done *)done, arg);
}

static void start_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct link_record link;

    if (result == STORE_OK)
        result = link_read_believed(asked->store, reply_at(reply, 0), &link);
    ((link_found *)asked->done)(asked->arg, result, result == STORE_OK ? &link : NULL, 0);
    secure_wipe(&link, sizeof link);
}

void link_store_start(struct store *store, const struct link_record *link, const uint8_t totp_sealed[TOTP_SEALED_BYTES],
                      link_found *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, link->digest, sizeof link->digest);
    args_add(&args, totp_text(totp_sealed));
    verb_ask(store, SCRIPT_link_start, SCRIPT_CHANGES, &args, start_answer, (verb_done *)done, arg);
}

/* Copies what belongs to accounts, in portions of one SCAN: asks each record's account, reads it by DUMP, restores it
 * in the account's partition, and compares (copy_compare.c). A record that a scan shows twice is copied twice, to the
 * same effect. */
#include "base/encode.h"
#include "base/mem.h"
#include "copy_portion.h"
#include "core/canary_key.h"
#include "core/tombstone.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCAN_COUNT "250"

enum { ALIAS_VALUE_BYTES = 8, EXPIRY_OF_NOTHING = -2 };

static copy_step owners_ask, owners_ask_again, records_read, records_write, records_compare;

void copy_records_finish(struct store_copy *copy)
{
    if (!copy->portion)
        return;
    arena_finish(&copy->portion->arena);
    free(copy->portion);
    copy->portion = NULL;
}

/* Scanning */

static void scan_next(struct store_copy *copy)
{
    struct copy_portion *portion = copy->portion;
    struct copy_name pattern;

    arena_finish(&portion->arena);
    portion->count = portion->next = 0;
    copy_call(portion->side, portion->partition, 6,
              (struct text[]){TEXT("SCAN"), text_of(portion->cursor), TEXT("MATCH"),
                              copy_pattern(&pattern, portion->side, portion->partition), TEXT("COUNT"),
                              TEXT(SCAN_COUNT)},
              portion->scanned, NULL);
    copy_then(copy, portion->then);
}

/* The cursor and the partition are where the scan goes on. */
static void portion_done(struct store_copy *copy)
{
    struct copy_portion *portion = copy->portion;

    if (strcmp(portion->cursor, "0") == 0)
        portion->partition++;
    if (portion->partition < portion->side->settings->partitions)
        scan_next(copy);
    else
        copy_next(copy);
}

/* then: what is done with each portion that was scanned. It ends with portion_done(). */
static void scan_begin(struct store_copy *copy, struct copy_side *side, copy_answered *scanned, copy_step *then)
{
    copy_records_finish(copy);
    copy->portion = mem_alloc(sizeof *copy->portion);
    copy->portion->side = side;
    copy->portion->scanned = scanned;
    copy->portion->then = then;
    snprintf(copy->portion->cursor, sizeof copy->portion->cursor, "0");
    arena_init(&copy->portion->arena, NULL, 0);
    scan_next(copy);
}

/* The names of the reply without the prefix, as items of the portion. */
static bool take_names(struct store_copy *copy, const struct redis_reply *reply)
{
    struct copy_portion *portion = copy->portion;
    struct copy_side *side = portion->side;
    const struct redis_reply *names = reply_at(reply, 1);
    struct copy_name prefix;
    size_t prefix_len = copy_name(&prefix, side, portion->partition, "", TEXT("")).len;

    if (!names || names->type != REPLY_ARRAY ||
        !reply_chars(reply_at(reply, 0), portion->cursor, sizeof portion->cursor)) {
        copy_malformed(side, "SCAN");
        return false;
    }
    portion->items = arena_alloc(&portion->arena, (names->count + 1) * sizeof *portion->items);
    for (size_t i = 0; i < names->count; i++) {
        struct copy_item *item = &portion->items[portion->count];
        struct text name;

        if (!reply_text(names->items[i], &name) || name.len < prefix_len)
            continue;
        item->name = copy_keep(copy, text_skip(name, prefix_len));
        item->kind = copy_kind_of(item->name, &item->owner);
        portion->count++;
    }
    return true;
}

/* A name of another store whose prefix begins with ours, or of several partitions beside one, is not of this one. */
static void note_unknown(struct store_copy *copy, struct text name)
{
    struct buf out;

    if (name.len == 0 || name.ptr[0] == '{')
        return;
    if (copy->copied.unknown++ > 0)
        return;
    buf_init_fixed(&out, copy->copied.an_unknown, sizeof copy->copied.an_unknown - 1);
    buf_append_printable(&out, (struct text){name.ptr, name.len < 40 ? name.len : 40});
}

static void on_scanned(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    if (!take_names(copy, reply))
        return;
    for (size_t i = 0; i < copy->portion->count; i++)
        if (copy->portion->items[i].kind == COPY_UNKNOWN)
            note_unknown(copy, copy->portion->items[i].name);
}

void copy_records(struct store_copy *copy)
{
    scan_begin(copy, &copy->from, on_scanned, owners_ask);
}

/* Owners */

static void get(struct store_copy *copy, const char *kind, struct text rest, copy_answered *answered,
                struct copy_item *item)
{
    copy_read(&copy->from, copy->portion->partition, "GET", kind, rest, answered, item);
}

static void on_account(struct store_copy *copy, void *arg, const struct redis_reply *reply)
{
    struct copy_item *item = arg;
    struct text account;

    if (!reply_text_or_nil(reply, &account) || (account.len > 0 && !id_parse(ID_ACCOUNT, account, &item->account)))
        copy_malformed(&copy->from, "account of a record");
}

static void get_account(struct store_copy *copy, const char *kind, struct text rest, struct copy_item *item)
{
    copy_call_on(&copy->from, copy->portion->partition, "HGET", kind, rest, COPY_WITH(TEXT("account")), on_account,
                 item);
}

static void on_key(struct store_copy *copy, void *arg, const struct redis_reply *reply)
{
    struct copy_item *item = arg;
    struct key_record key;
    struct text packed;

    if (reply->type == REPLY_NIL)
        return;
    if (!reply_text(reply, &packed) || !key_decode(packed, &key)) {
        copy_malformed(&copy->from, "key");
        return;
    }
    if (canary_owns(&key.account)) {
        item->kind = COPY_LEFT;
        return;
    }
    item->account = key.account;
    item->key = key.id;
    item->ends_ms = key.ends_ms;
}

/* The value names what to ask next: a key's digest, or a user. */
static void on_next(struct store_copy *copy, void *arg, const struct redis_reply *reply)
{
    struct copy_item *item = arg;
    struct text value, user;

    if (!reply_text_or_nil(reply, &value)) {
        copy_malformed(&copy->from, "reference");
        return;
    }
    value = copy_keep(copy, value);
    if (item->kind == COPY_EMAIL && text_next(&value, ' ', &user)) {
        item->user = user;
        if (value.len > 0 && !id_parse(ID_ACCOUNT, value, &item->account))
            copy_malformed(&copy->from, "email");
        value = item->account.text[0] ? TEXT("") : user;
    }
    item->asked = value;
    item->next = value.len == 0 ? ASK_NOTHING : item->kind == COPY_KEY_NOTE ? ASK_KEY : ASK_USER;
}

static void owner_ask(struct store_copy *copy, struct copy_item *item)
{
    switch (item->kind) {
    case COPY_ACCOUNT:
        if (!id_parse(ID_ACCOUNT, item->owner, &item->account))
            copy_malformed(&copy->from, "account");
        break;
    case COPY_USER:
        get_account(copy, "user:", item->owner, item);
        break;
    case COPY_SESSION:
    case COPY_LINK:
        get_account(copy, "", item->name, item);
        break;
    case COPY_KEY:
        get(copy, "", item->name, on_key, item);
        break;
    case COPY_KEY_NOTE:
        get(copy, "id:", item->owner, on_next, item);
        break;
    case COPY_RECOVERY:
    case COPY_EMAIL:
        get(copy, "", item->name, on_next, item);
        break;
    case COPY_TOMBSTONE:
    case COPY_UNKNOWN:
    case COPY_DERIVED:
    case COPY_WHOLE:
    case COPY_LEFT:
        break;
    }
}

static void owners_ask(struct store_copy *copy)
{
    for (size_t i = 0; i < copy->portion->count; i++)
        owner_ask(copy, &copy->portion->items[i]);
    copy_then(copy, owners_ask_again);
}

static void owners_ask_again(struct store_copy *copy)
{
    for (size_t i = 0; i < copy->portion->count; i++) {
        struct copy_item *item = &copy->portion->items[i];

        if (item->next == ASK_KEY)
            get(copy, "key:", item->asked, on_key, item);
        else if (item->next == ASK_USER)
            get_account(copy, "user:", item->asked, item);
    }
    copy_then(copy, records_read);
}

/* Records */

static bool has_digest(const struct copy_item *item)
{
    return item->kind == COPY_KEY || item->kind == COPY_SESSION || item->kind == COPY_LINK ||
           item->kind == COPY_RECOVERY;
}

static bool is_record(const struct copy_item *item)
{
    return item->kind == COPY_ACCOUNT || item->kind == COPY_USER || item->kind == COPY_KEY_NOTE || has_digest(item);
}

static void on_dumped(struct store_copy *copy, void *arg, const struct redis_reply *reply)
{
    struct copy_item *item = arg;

    if (!reply_text_or_nil(reply, &item->payload)) {
        copy_malformed(&copy->from, "DUMP");
        return;
    }
    item->is_there = reply->type != REPLY_NIL;
    if (item->payload.len > COPY_RECORD_BYTES)
        copy_fail(copy, "The record %.*s has %zu MiB, more than can be copied.", TEXT_ARG(item->name),
                  item->payload.len / (1024 * 1024));
    item->payload = copy_keep(copy, item->payload);
}

static void on_expiry(struct store_copy *copy, void *arg, const struct redis_reply *reply)
{
    struct copy_item *item = arg;

    if (!reply_integer(reply, &item->expires_ms))
        copy_malformed(&copy->from, "expiry");
    else if (item->expires_ms == EXPIRY_OF_NOTHING)
        item->is_there = false; /* it has expired since it was dumped */
}

static void record_read(struct store_copy *copy, struct copy_item *item)
{
    copy_read(&copy->from, copy->portion->partition, "DUMP", "", item->name, on_dumped, item);
    copy_read(&copy->from, copy->portion->partition, "PEXPIRETIME", "", item->name, on_expiry, item);
}

/* A tombstone names no account: it lies where a check that has its digest looks first. */
static unsigned bucket_of(const struct copy_item *item)
{
    uint8_t bucket;

    if (item->kind == COPY_TOMBSTONE)
        return tombstone_name_bucket(item->owner, &bucket) ? bucket : 0;
    if (item->kind == COPY_EMAIL)
        return bucket_of_text(item->owner);
    return item->account.text[0] ? bucket_of_account(&item->account) : 0;
}

static void records_read(struct store_copy *copy)
{
    for (size_t i = 0; i < copy->portion->count; i++) {
        struct copy_item *item = &copy->portion->items[i];

        item->to = bucket_of(item) & (copy->to.settings->partitions - 1);
        if (item->kind == COPY_TOMBSTONE || (item->account.text[0] && is_record(item)))
            record_read(copy, item);
        else if (!item->account.text[0] && (is_record(item) || item->kind == COPY_EMAIL))
            copy->copied.left++;
    }
    copy_then(copy, records_write);
}

/* A lookup goes where the digest says, and finds from there where the record is. */
static void write_alias(struct store_copy *copy, const struct copy_item *item)
{
    uint8_t digest[KEYRING_DIGEST_BYTES];
    char bucket[ALIAS_VALUE_BYTES], expires[24];

    if (!decode_hex(item->owner, digest, sizeof digest)) {
        copy_malformed(&copy->from, "digest");
        return;
    }
    unsigned at = bucket_of_digest(digest) & (copy->to.settings->partitions - 1);
    if (at == item->to)
        return;
    snprintf(bucket, sizeof bucket, "%u", bucket_of_account(&item->account));
    snprintf(expires, sizeof expires, "%" PRId64, item->expires_ms);
    copy_write(copy, at, "SET", "alias:", item->owner, item->expires_ms > 0 ? 3 : 1,
               (struct text[]){text_of(bucket), TEXT("PXAT"), text_of(expires)});
    copy->has_aliases[at] = true;
    copy->copied.aliases++;
}

static void write_end(struct store_copy *copy, const struct copy_item *item)
{
    char ends[24];

    snprintf(ends, sizeof ends, "%" PRId64, item->ends_ms);
    copy_write(copy, item->to, "ZADD", "key_ends", TEXT(""), COPY_WITH(text_of(ends), id_text(&item->key)));
}

static void write_record(struct store_copy *copy, const struct copy_item *item)
{
    char expires[24];

    snprintf(expires, sizeof expires, "%" PRId64, item->expires_ms > 0 ? item->expires_ms : 0);
    copy_write(copy, item->to, "RESTORE", "", item->name, item->expires_ms > 0 ? 4 : 3,
               (struct text[]){text_of(expires), item->payload, TEXT("REPLACE"), TEXT("ABSTTL")});
    if (item->kind == COPY_ACCOUNT && item->name.len == strlen("acct:") + item->owner.len)
        copy_write(copy, item->to, "ZADD", "accounts", TEXT(""), COPY_WITH(TEXT("0"), item->owner));
    if (item->kind == COPY_KEY)
        copy_write(copy, item->to, "SET", "id:", id_text(&item->key), 1, &item->owner);
    if (item->ends_ms > 0)
        write_end(copy, item);
    if (has_digest(item))
        write_alias(copy, item);
    copy->copied.sessions += item->kind == COPY_SESSION;
    copy->copied.links += item->kind == COPY_LINK;
}

/* With several partitions an email may be apart from its user's record, so it names the account too. */
static void write_email(struct store_copy *copy, const struct copy_item *item)
{
    struct buf value = BUF_FIXED(2 * ID_TEXT_BYTES);

    buf_append_text(&value, item->user);
    if (copy->to.settings->partitions > 1)
        buf_printf(&value, " %.*s", TEXT_ARG(id_text(&item->account)));
    if (value.failed)
        copy_malformed(&copy->from, "email");
    else
        copy_write(copy, item->to, "SET", "", item->name, COPY_WITH(buf_text(&value)));
    copy->copied.emails++;
}

static void records_write(struct store_copy *copy)
{
    struct copy_portion *portion = copy->portion;
    size_t bytes = 0;

    for (; portion->next < portion->count && bytes < COPY_BATCH_BYTES; portion->next++) {
        const struct copy_item *item = &portion->items[portion->next];

        if (bytes > 0 && bytes + item->payload.len > COPY_BATCH_BYTES)
            break;
        if (item->is_there)
            write_record(copy, item);
        else if (item->kind == COPY_EMAIL && item->account.text[0])
            write_email(copy, item);
        bytes += item->payload.len + COPY_NAME_BYTES;
    }
    copy_then(copy, portion->next < portion->count ? records_write : records_compare);
}

static void records_compare(struct store_copy *copy)
{
    copy_compare(copy, portion_done);
}

/* Wiping: of the target, what an interrupted copy has left. */

static bool is_marker(struct text name)
{
    return text_equal(name, TEXT("store")) || text_equal(name, TEXT("schema"));
}

static void on_to_wipe(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    if (!take_names(copy, reply))
        return;
    for (size_t i = 0; i < copy->portion->count; i++) {
        const struct copy_item *found = &copy->portion->items[i];

        if (found->kind != COPY_UNKNOWN && !is_marker(found->name))
            copy_write(copy, copy->portion->partition, "UNLINK", "", found->name, 0, NULL);
    }
}

void copy_wipe(struct store_copy *copy)
{
    scan_begin(copy, &copy->to, on_to_wipe, portion_done);
}

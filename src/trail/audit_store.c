#include "trail/audit_store.h"

#include "base/mem.h"
#include "trail/audit_events.h"
#include "engine/verb.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An event's id is a ULID: 48 bits of time, 48 bits of its account, and the 32 bits that the prelude calls its number.
 * So it converts back to its stream entry and shows whose event it is. */
enum { TIME_BYTES = 6, SEQUENCE_BYTES = 4, CLASS_SHIFT = 30, ENTRY_ID_BYTES = 48 };

/* As audit() in the prelude names the fields. */
static const struct text DATA_PREFIX = {"data:", 5};

static void put_bytes(uint8_t *to, size_t bytes, uint64_t value)
{
    for (size_t i = bytes; i-- > 0; value >>= 8)
        to[i] = (uint8_t)value;
}

static uint64_t take_bytes(const uint8_t *from, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | from[i];
    return value;
}

struct audit_owner audit_owner_of(const struct id *account)
{
    uint8_t ulid[ULID_BYTES];
    struct audit_owner owner;

    id_to_bytes(account, ulid);
    memcpy(owner.bytes, ulid + ULID_BYTES - AUDIT_OWNER_BYTES, AUDIT_OWNER_BYTES);
    return owner;
}

void audit_print_name(const struct id *event, const struct audit_owner *owner, struct buf *out)
{
    uint8_t ulid[ULID_BYTES];

    if (id_kind_of(id_text(event)) != ID_EVENT) {
        buf_append_str(out, "none");
        return;
    }
    id_to_bytes(event, ulid);
    if (memcmp(ulid + TIME_BYTES, owner->bytes, AUDIT_OWNER_BYTES) != 0) {
        buf_append_str(out, "none");
        return;
    }
    buf_append_u64(out, take_bytes(ulid, TIME_BYTES));
    buf_append_char(out, '-');
    buf_append_u64(out, take_bytes(ulid + TIME_BYTES + AUDIT_OWNER_BYTES, SEQUENCE_BYTES));
}

static struct id event_id(const struct audit_owner *owner, uint64_t ms, uint64_t number)
{
    uint8_t ulid[ULID_BYTES];
    struct id id;

    put_bytes(ulid, TIME_BYTES, ms);
    memcpy(ulid + TIME_BYTES, owner->bytes, AUDIT_OWNER_BYTES);
    put_bytes(ulid + TIME_BYTES + AUDIT_OWNER_BYTES, SEQUENCE_BYTES, number);
    id_from_bytes(ID_EVENT, ulid, &id);
    return id;
}

/* "<ms>-<number>" */
static bool read_pair(struct text pair, uint64_t number_max, uint64_t *ret_ms, uint64_t *ret_number)
{
    struct text ms, number;

    return text_next(&pair, '-', &ms) && text_next(&pair, '-', &number) && !pair.ptr &&
           text_to_u64(ms, (UINT64_C(1) << 48) - 1, ret_ms) && text_to_u64(number, number_max, ret_number);
}

bool audit_read_name(struct text name, const struct audit_owner *owner, struct id *ret_id)
{
    uint64_t ms, number;

    if (!read_pair(name, UINT32_MAX, &ms, &number))
        return false;
    *ret_id = event_id(owner, ms, number);
    return true;
}

/* What may follow the fields that all events have. Fields of later versions are skipped. */
static bool read_more(const struct redis_reply *fields, size_t at, struct audit_event *event)
{
    event->count = 0;
    event->data_count = 0;
    for (; at < fields->count; at += 2) {
        struct text name, value;

        if (!reply_text(reply_at(fields, at), &name) || !reply_text(reply_at(fields, at + 1), &value))
            return false;
        if (text_equal(name, TEXT("count"))) {
            if (!reply_integer(reply_at(fields, at + 1), &event->count) || event->count <= 0)
                return false;
        } else if (text_starts_with(name, DATA_PREFIX) && event->data_count < AUDIT_DATA_MAX) {
            event->data[event->data_count++] = (struct audit_datum){text_skip(name, DATA_PREFIX.len), value};
        }
    }
    return true;
}

bool audit_fields_read(const struct redis_reply *fields, struct audit_event *event)
{
    const struct {
        struct text name;
        struct text *value;
    } expected[] = {
        {TEXT("type"), &event->type}, {TEXT("actor"), &event->actor},           {TEXT("target"), &event->target},
        {TEXT("ip"), &event->ip},     {TEXT("request_id"), &event->request_id},
    };
    const size_t count = sizeof expected / sizeof *expected;

    if (!fields || fields->type != REPLY_ARRAY || fields->count < 2 * count)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct text name;

        if (!reply_text(reply_at(fields, 2 * i), &name) || !text_equal(name, expected[i].name) ||
            !reply_text(reply_at(fields, 2 * i + 1), expected[i].value))
            return false;
    }
    return read_more(fields, 2 * count, event);
}

bool audit_entry_read(const struct redis_reply *entry, size_t class, const struct id *account,
                      struct audit_event *ret_event)
{
    struct audit_owner owner = {0};
    uint64_t ms, sequence;
    struct text pair;

    if (!reply_text(entry, &pair) || !read_pair(pair, (UINT64_C(1) << CLASS_SHIFT) - 1, &ms, &sequence))
        return false;
    if (account->text[0])
        owner = audit_owner_of(account);
    ret_event->created_ms = (int64_t)ms;
    ret_event->id = event_id(&owner, ms, (uint64_t) class << CLASS_SHIFT | sequence);
    return true;
}

bool audit_read_event(const struct redis_reply *reply, const struct audit_owner *owner, struct audit_event *ret_event)
{
    struct text name;

    if (!reply_text(reply_at(reply, 0), &name) || !audit_read_name(name, owner, &ret_event->id) ||
        !audit_fields_read(reply_at(reply, 1), ret_event) || !reply_text(reply_at(reply, 2), &ret_event->actor_name) ||
        !reply_text(reply_at(reply, 3), &ret_event->target_name) ||
        !reply_text(reply_at(reply, 4), &ret_event->target_kind))
        return false;
    ret_event->created_ms = id_time_ms(&ret_event->id);
    return true;
}

struct follow_call {
    struct store *store;
    struct audit_owner owner;
    unsigned limit;
    audit_listed *done;
    void *arg;
};

static bool read_events(const struct redis_reply *reply, const struct audit_owner *owner, struct audit_event *events)
{
    for (size_t i = 0; i < reply->count; i++)
        if (!audit_read_event(reply_at(reply, i), owner, &events[i]))
            return false;
    return true;
}

static void follow_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct follow_call call = *(struct follow_call *)arg;
    struct audit_event *events = mem_alloc((call.limit + 1) * sizeof *events);
    size_t count = 0;

    free(arg);
    if (result == STORE_OK && (reply->count > call.limit + 1 || !read_events(reply, &call.owner, events))) {
        store_malformed(call.store, "audit trail");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_OK)
        count = reply->count;
    call.done(call.arg, result, events, count > call.limit ? call.limit : count, count > call.limit);
    free(events);
}

void audit_position_note(struct audit_position *position, const struct id *event)
{
    uint8_t ulid[ULID_BYTES];

    id_to_bytes(event, ulid);
    uint64_t ms = take_bytes(ulid, TIME_BYTES),
             number = take_bytes(ulid + TIME_BYTES + AUDIT_OWNER_BYTES, SEQUENCE_BYTES);
    uint64_t class = number >> CLASS_SHIFT, sequence = number & ((UINT64_C(1) << CLASS_SHIFT) - 1);

    if (ms < position->of[class].ms || (ms == position->of[class].ms && sequence < position->of[class].sequence))
        return;
    position->of[class].ms = ms;
    position->of[class].sequence = sequence;
}

void audit_position_skip_until(struct audit_position *position, int64_t ms)
{
    for (size_t i = 0; i < AUDIT_CLASSES; i++) {
        if (position->of[i].ms > 0 || ms <= 0)
            continue;
        position->of[i].ms = (uint64_t)ms - 1;
        position->of[i].sequence = UINT64_MAX;
    }
}

void audit_store_follow(struct store *store, const struct id *account, unsigned limit,
                        const struct audit_position *position, audit_listed *done, void *arg)
{
    struct follow_call *call = mem_alloc(sizeof *call);
    char entries[AUDIT_CLASSES][ENTRY_ID_BYTES];
    struct script_args args;

    *call = (struct follow_call){store, audit_owner_of(account), limit, done, arg};
    args_begin(&args);
    args_add(&args, id_text(account));
    args_add_int(&args, (int64_t)limit + 1);
    for (size_t i = 0; i < AUDIT_CLASSES; i++) {
        snprintf(entries[i], sizeof entries[i], "%" PRIu64 "-%" PRIu64, position->of[i].ms, position->of[i].sequence);
        args_add(&args, text_of(entries[i]));
    }
    store_call_script(store, SCRIPT_audit_follow, SCRIPT_WORK, args.count, args.argv, follow_called, call);
}

#include "records/usage_store.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/verb.h"
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { MS_PER_DAY = 86400000, NUMBER_BYTES = 21, BATCH_ARGS = 5, GROUP_ARGS = 4, REFUSAL_ARGS = 11 };
enum { USES_BYTES = 4, LAST_USED_BYTES = 6, COUNTS_BYTES = USES_BYTES + LAST_USED_BYTES };

/* Entries of one account and mode update the same hashes in Redis, so they are sent together. */
static int compare_groups(const struct usage_entry *a, const struct usage_entry *b)
{
    int accounts = memcmp(a->account, b->account, ULID_TEXT_CHARS);

    return accounts != 0 ? accounts : a->is_live - b->is_live;
}

static int compare_entries(const void *a, const void *b)
{
    return compare_groups(*(const struct usage_entry *const *)a, *(const struct usage_entry *const *)b);
}

static void append_little_endian(struct buf *out, uint64_t value, size_t bytes)
{
    value = htole64(value);
    buf_append(out, &value, bytes);
}

/* A batch as usage_flush.lua takes it. */
struct batch {
    size_t argc;
    struct buf bytes; /* over storage: arguments that had to be printed */
    struct text argv[BATCH_ARGS + USAGE_REFUSALS_BATCH_MAX * REFUSAL_ARGS + USAGE_BATCH_MAX * (GROUP_ARGS + 1)];
    char storage[BATCH_ARGS * NUMBER_BYTES +
                 USAGE_REFUSALS_BATCH_MAX *
                     (NUMBER_BYTES + CLOCK_DATE_BYTES + 2 * ID_TEXT_BYTES + ADDRESS_TEXT_BYTES + CLOCK_RFC3339_BYTES) +
                 USAGE_BATCH_MAX * (NUMBER_BYTES + COUNTS_BYTES + 2 * ID_TEXT_BYTES)];
};

static void add_argument(struct batch *batch, struct text argument)
{
    batch->argv[batch->argc++] = argument;
}

static void add_id(struct batch *batch, enum id_kind kind, const char chars[ULID_TEXT_CHARS])
{
    size_t from = batch->bytes.len;
    struct id id;

    id_from_chars(kind, chars, &id);
    buf_append_text(&batch->bytes, id_text(&id));
    add_argument(batch, text_skip(buf_text(&batch->bytes), from));
}

static void add_date(struct batch *batch, int64_t ms)
{
    char date[CLOCK_DATE_BYTES];
    size_t from = batch->bytes.len;

    clock_print_date(ms, date);
    buf_append_str(&batch->bytes, date);
    add_argument(batch, text_skip(buf_text(&batch->bytes), from));
}

/* As sign-ins are counted: one client may use any address of its network. Empty for what is no address. */
static void add_network(struct batch *batch, struct text ip)
{
    enum { IPV4_NETWORK_BITS = 24, IPV6_NETWORK_BITS = 56 };
    size_t from = batch->bytes.len;
    struct address address;

    if (address_parse(ip, &address))
        address_print_block(&address, IPV4_NETWORK_BITS, IPV6_NETWORK_BITS, &batch->bytes);
    add_argument(batch, text_skip(buf_text(&batch->bytes), from));
}

static void add_time(struct batch *batch, int64_t ms)
{
    char time[CLOCK_RFC3339_BYTES];
    size_t from = batch->bytes.len;

    clock_print_rfc3339(ms, time);
    buf_append_str(&batch->bytes, time);
    add_argument(batch, text_skip(buf_text(&batch->bytes), from));
}

static void add_refusal(struct batch *batch, const struct usage_refusal *refusal)
{
    static const struct text REASONS[USAGE_REASONS] = {
        [USAGE_REVOKED] = TEXT("revoked"),
        [USAGE_SCOPE] = TEXT("insufficient_scope"),
        [USAGE_MODE] = TEXT("mode_not_permitted"),
        [USAGE_SUSPENDED] = TEXT("account_suspended"),
    };

    add_id(batch, ID_ACCOUNT, refusal->account);
    add_id(batch, key_id_kind(refusal->is_device ? KEY_DEVICE : KEY_API), refusal->key);
    add_argument(batch, key_mode_text(refusal->is_live ? MODE_LIVE : MODE_TEST));
    add_argument(batch, REASONS[refusal->reason]);
    add_date(batch, refusal->first_ms);
    add_argument(batch, text_keep_u64(&batch->bytes, refusal->count));
    add_argument(batch, text_of(refusal->ip));
    add_argument(batch, text_of(refusal->request_id));
    add_network(batch, text_of(refusal->ip));
    add_time(batch, refusal->first_ms);
    add_argument(batch, text_of(refusal->route));
}

static void add_group(struct batch *batch, const struct usage_entry *const *entries, size_t n)
{
    size_t counts;

    add_id(batch, ID_ACCOUNT, entries[0]->account);
    add_argument(batch, key_mode_text(entries[0]->is_live ? MODE_LIVE : MODE_TEST));
    add_argument(batch, text_keep_u64(&batch->bytes, n));
    counts = batch->bytes.len;
    for (size_t i = 0; i < n; i++) {
        append_little_endian(&batch->bytes, entries[i]->uses, USES_BYTES);
        append_little_endian(&batch->bytes, entries[i]->last_used_ms, LAST_USED_BYTES);
    }
    add_argument(batch, text_skip(buf_text(&batch->bytes), counts));
    for (size_t i = 0; i < n; i++)
        add_id(batch, key_id_kind(entries[i]->is_device ? KEY_DEVICE : KEY_API), entries[i]->key);
}

/* Entries arrive in order of first use, with accounts mixed. */
static void add_groups(struct batch *batch, const struct usage_entry *entries, size_t count)
{
    const struct usage_entry *sorted[USAGE_BATCH_MAX];
    bool is_sorted = true;

    for (size_t i = 0; i < count; i++) {
        CHECK(entries[i].last_used_ms / MS_PER_DAY == entries[0].last_used_ms / MS_PER_DAY);
        sorted[i] = &entries[i];
        is_sorted = is_sorted && (i == 0 || compare_groups(&entries[i - 1], &entries[i]) <= 0);
    }
    if (!is_sorted)
        qsort(sorted, count, sizeof *sorted, compare_entries);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && compare_groups(sorted[i], sorted[i + n]) == 0;)
            n++;
        add_group(batch, sorted + i, n);
    }
}

void usage_store_flush(struct store *store, struct text sender, uint64_t sequence, const struct usage_batch *sent,
                       store_done *done, void *arg)
{
    struct batch *batch = mem_resize(NULL, sizeof *batch); /* not zeroed: usually most of it is unused */

    CHECK(sent->count + sent->refusal_count > 0 && sent->count <= USAGE_BATCH_MAX &&
          sent->refusal_count <= USAGE_REFUSALS_BATCH_MAX);
    batch->argc = 0;
    buf_init_fixed(&batch->bytes, batch->storage, sizeof batch->storage);
    add_argument(batch, sender);
    add_argument(batch, text_keep_u64(&batch->bytes, sequence));
    add_date(batch, sent->count ? (int64_t)sent->entries[0].last_used_ms : sent->refusals[0].first_ms);
    add_argument(batch, text_keep_u64(&batch->bytes, (uint64_t)store_audit_max(store)));
    add_argument(batch, text_keep_u64(&batch->bytes, sent->refusal_count));
    for (size_t i = 0; i < sent->refusal_count; i++)
        add_refusal(batch, &sent->refusals[i]);
    add_groups(batch, sent->entries, sent->count);
    CHECK(!batch->bytes.failed);
    verb_call(store, SCRIPT_usage_flush, SCRIPT_READS, batch->argc, batch->argv, done, arg);
    free(batch);
}

/* Days of named keys are read in slices, so that each script takes Redis about 1 ms. A day is in one slice with all of
 * its keys, so the keys of a day add up to no more than the day. */
enum { SLICE_CELLS = 200 };

struct read_call {
    struct store *store;
    usage_read *done;
    void *arg;
    struct id account;
    struct id *named; /* the keys that were asked for */
    size_t named_count;
    struct usage_key *keys;
    int64_t *by_day;    /* day_count for each named key */
    struct arena texts; /* of the keys */
    size_t key_count, day_count;
    size_t first, slice; /* the days that are being read */
    struct usage_day days[];
};

enum { DAYS_ITEMS = 2 }; /* items of a reply before its keys */

/* A counter; nil is 0. */
static bool read_counter(const struct redis_reply *reply, int64_t *ret_value)
{
    *ret_value = 0;
    return reply && (reply->type == REPLY_NIL || (reply_integer(reply, ret_value) && *ret_value >= 0));
}

/* An array of exactly that many items. */
static bool is_counters(const struct redis_reply *reply, size_t count)
{
    return reply && reply->type == REPLY_ARRAY && reply->count == count;
}

static bool read_days(const struct redis_reply *requests, const struct redis_reply *refused, struct usage_day *days,
                      size_t count)
{
    if (!is_counters(requests, 2 * count) || !is_counters(refused, 2 * count))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!read_counter(reply_at(requests, 2 * i), &days[i].test_requests) ||
            !read_counter(reply_at(requests, 2 * i + 1), &days[i].live_requests) ||
            !read_counter(reply_at(refused, 2 * i), &days[i].test_refused) ||
            !read_counter(reply_at(refused, 2 * i + 1), &days[i].live_refused))
            return false;
    }
    return true;
}

static bool read_refused(const struct redis_reply *reply, int64_t ret_refused[USAGE_REASONS])
{
    if (!is_counters(reply, USAGE_REASONS))
        return false;
    for (size_t i = 0; i < USAGE_REASONS; i++)
        if (!read_counter(reply_at(reply, i), &ret_refused[i]))
            return false;
    return true;
}

static bool read_key_id(const struct redis_reply *reply, struct id *ret_id)
{
    return reply_id(reply, ID_KEY, ret_id) || reply_id(reply, ID_DEVICE, ret_id);
}

/* Adds the slice's days to the k-th key. The first slice tells its name and mode. */
static bool read_key(struct read_call *call, const struct redis_reply *reply, size_t k)
{
    const struct redis_reply *days = reply_at(reply, 4);
    struct usage_key *key = &call->keys[k];
    int64_t requests, refused[USAGE_REASONS];
    struct text name, mode;
    struct id id;

    if (!read_key_id(reply_at(reply, 0), &id) || !reply_integer(reply_at(reply, 1), &requests) || requests < 0 ||
        !reply_text(reply_at(reply, 2), &name) || !reply_text(reply_at(reply, 3), &mode) ||
        !is_counters(days, call->named_count ? call->slice : 0) || !read_refused(reply_at(reply, 5), refused))
        return false;
    if (call->first == 0)
        *key = (struct usage_key){
            .key = id, .name = arena_copy(&call->texts, name), .mode = arena_copy(&call->texts, mode)};
    else if (!id_equal(&id, &key->key))
        return false;
    key->requests += requests;
    for (size_t i = 0; i < USAGE_REASONS; i++)
        key->refused[i] += refused[i];
    if (days->count > 0)
        key->by_day = call->by_day + k * call->day_count;
    for (size_t i = 0; i < days->count; i++)
        if (!read_counter(reply_at(days, i), &call->by_day[k * call->day_count + call->first + i]))
            return false;
    return true;
}

static bool read_slice(struct read_call *call, const struct redis_reply *reply)
{
    const size_t most = call->named_count ? call->named_count : USAGE_KEYS_LISTED;

    if (reply->count < DAYS_ITEMS || reply->count - DAYS_ITEMS > most ||
        (call->named_count && reply->count - DAYS_ITEMS != most) ||
        !read_days(reply_at(reply, 0), reply_at(reply, 1), call->days + call->first, call->slice))
        return false;
    call->key_count = reply->count - DAYS_ITEMS;
    for (size_t k = 0; k < call->key_count; k++)
        if (!read_key(call, reply_at(reply, k + DAYS_ITEMS), k))
            return false;
    return true;
}

static void read_finish(struct read_call *call, enum store_result result)
{
    if (result == STORE_OK)
        call->done(call->arg, result, call->days, call->day_count, call->keys, call->key_count);
    else
        call->done(call->arg, result, NULL, 0, NULL, 0);
    arena_finish(&call->texts);
    free(call->by_day);
    free(call->keys);
    free(call->named);
    free(call);
}

static void slice_called(void *arg, enum store_result result, const struct redis_reply *reply);

static size_t slice_days(const struct read_call *call)
{
    const size_t left = call->day_count - call->first, most = SLICE_CELLS / (call->named_count + 1) + 1;

    return call->named_count > 0 && most < left ? most : left;
}

static void send_slice(struct read_call *call)
{
    enum { FIXED_ARGS = 3 };
    struct text *argv;
    struct buf numbers = BUF_FIXED(2 * NUMBER_BYTES);

    call->slice = slice_days(call);
    argv = mem_alloc((FIXED_ARGS + call->slice + call->named_count) * sizeof *argv);
    argv[0] = id_text(&call->account);
    argv[1] = text_keep_u64(&numbers, call->first == 0 ? USAGE_KEYS_LISTED : 0);
    argv[2] = text_keep_u64(&numbers, call->slice);
    for (size_t i = 0; i < call->slice; i++)
        argv[FIXED_ARGS + i] = text_of(call->days[call->first + i].date);
    for (size_t i = 0; i < call->named_count; i++)
        argv[FIXED_ARGS + call->slice + i] = id_text(&call->named[i]);
    store_call_script(call->store, SCRIPT_usage_read, SCRIPT_WORK, FIXED_ARGS + call->slice + call->named_count, argv,
                      slice_called, call);
    free(argv);
}

static void slice_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct read_call *call = arg;

    if (result == STORE_OK && !read_slice(call, reply)) {
        store_malformed(call->store, "usage");
        result = STORE_UNAVAILABLE;
    }
    call->first += call->slice;
    if (result == STORE_OK && call->first < call->day_count)
        send_slice(call);
    else
        read_finish(call, result);
}

void usage_store_read(struct store *store, const struct id *account, const struct usage_wanted *wanted,
                      usage_read *done, void *arg)
{
    const size_t days = wanted->days, named = wanted->key_count;
    struct read_call *call = mem_alloc(sizeof *call + days * sizeof *call->days);
    int64_t now_ms = wanted->last_ms ? wanted->last_ms : clock_wall_ms();

    CHECK(days >= 1 && days <= USAGE_DAYS_MAX && days * named <= USAGE_CELLS_MAX);
    *call = (struct read_call){
        .store = store, .done = done, .arg = arg, .account = *account, .named_count = named, .day_count = days};
    call->named = mem_alloc((named + 1) * sizeof *call->named);
    if (named > 0)
        memcpy(call->named, wanted->keys, named * sizeof *call->named);
    call->keys = mem_alloc((named ? named : USAGE_KEYS_LISTED) * sizeof *call->keys);
    call->by_day = mem_alloc((named * days + 1) * sizeof *call->by_day);
    arena_init(&call->texts, NULL, 0);
    for (size_t i = 0; i < days; i++)
        clock_print_date(now_ms - (int64_t)(days - 1 - i) * MS_PER_DAY, call->days[i].date);
    send_slice(call);
}

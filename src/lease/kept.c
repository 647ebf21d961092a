#include "lease/kept.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/metrics.h"
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 16384,
    MAKER_BYTES = MAKER_CHARS / 2,
};
static const uint64_t KEPT_NS = UINT64_C(600) * 1000 * CLOCK_NS_PER_MS;

struct owner {
    struct owner *next; /* in its bucket */
    uint8_t account[ULID_BYTES];
    struct list entries; /* by `of_owner`, the oldest first */
    size_t count;
};

struct kept_entry {
    struct list node;        /* of all, as they were added; the entries of a change follow each other */
    struct list of_owner;    /* those of its account */
    struct kept_entry *next; /* in its bucket: of the same subjects, the latest first */
    struct owner *owner;
    uint64_t heard_ns, number;
    int64_t at_ms, said_ms;
    uint8_t subject[ULID_BYTES], maker[MAKER_BYTES];
    uint16_t place, together; /* in its change, and how many entries came with it */
    uint8_t kind;             /* enum id_kind */
    uint8_t what;
    bool has_maker, by_replacement;
};

struct kept {
    struct list entries;
    size_t count;
    struct kept_entry *subjects[BUCKETS];
    struct owner *owners[BUCKETS];
};

/* ULIDs end with random bits. */
static size_t bucket_of(const uint8_t ulid[ULID_BYTES])
{
    return (size_t)(ulid[ULID_BYTES - 1] | ulid[ULID_BYTES - 2] << 8) % BUCKETS;
}

struct kept *kept_create(void)
{
    struct kept *kept = mem_alloc(sizeof *kept);

    list_init(&kept->entries);
    return kept;
}

/* Dropping */

static void owner_drop(struct kept *kept, struct owner *owner)
{
    struct owner **place = &kept->owners[bucket_of(owner->account)];

    while (*place != owner)
        place = &(*place)->next;
    *place = owner->next;
    free(owner);
}

static void entry_drop(struct kept *kept, struct kept_entry *entry)
{
    struct kept_entry **place = &kept->subjects[bucket_of(entry->subject)];

    while (*place != entry)
        place = &(*place)->next;
    INVARIANT(kept->count > 0 && entry->owner->count > 0);
    *place = entry->next;
    list_remove(&entry->node);
    list_remove(&entry->of_owner);
    kept->count--;
    metric_add(METRIC_KEPT, -1);
    if (--entry->owner->count == 0)
        owner_drop(kept, entry->owner);
    free(entry);
}

static struct kept_entry *oldest(struct kept *kept)
{
    struct list *node = list_first(&kept->entries);

    return node ? LIST_ENTRY(node, struct kept_entry, node) : NULL;
}

void kept_destroy(struct kept *kept)
{
    struct kept_entry *entry;

    while ((entry = oldest(kept)))
        entry_drop(kept, entry);
    free(kept);
}

static void drop_old(struct kept *kept)
{
    uint64_t now_ns = clock_boot_ns();
    struct kept_entry *entry;

    while ((entry = oldest(kept)) && now_ns - entry->heard_ns > KEPT_NS)
        entry_drop(kept, entry);
}

static struct owner *heaviest(const struct kept *kept)
{
    struct owner *most = NULL;

    for (size_t i = 0; i < BUCKETS; i++)
        for (struct owner *owner = kept->owners[i]; owner; owner = owner->next)
            if (!most || owner->count > most->count)
                most = owner;
    return most;
}

/* A sixteenth at once, because finding the account takes a while. */
static void push_out(struct kept *kept)
{
    struct owner *owner = heaviest(kept);

    INVARIANT(owner && owner->count > 0);
    size_t count = owner->count / 16 + 1;

    metric_add(METRIC_KEPT_PUSHED_OUT, (int64_t)count);
    while (count-- > 0)
        entry_drop(kept, LIST_ENTRY(list_first(&owner->entries), struct kept_entry, of_owner));
}

/* Adding */

static struct owner *owner_of(struct kept *kept, const struct id *account)
{
    uint8_t ulid[ULID_BYTES];
    struct owner *owner;

    id_to_bytes(account, ulid);
    for (owner = kept->owners[bucket_of(ulid)]; owner; owner = owner->next)
        if (memcmp(owner->account, ulid, sizeof ulid) == 0)
            return owner;
    owner = mem_alloc(sizeof *owner);
    memcpy(owner->account, ulid, sizeof ulid);
    list_init(&owner->entries);
    owner->next = kept->owners[bucket_of(ulid)];
    kept->owners[bucket_of(ulid)] = owner;
    return owner;
}

static struct kept_entry *entry_of(const struct kept *kept, const struct id *subject)
{
    uint8_t ulid[ULID_BYTES];
    struct kept_entry *entry;

    id_to_bytes(subject, ulid);
    for (entry = kept->subjects[bucket_of(ulid)]; entry; entry = entry->next)
        if (memcmp(entry->subject, ulid, sizeof ulid) == 0 && entry->kind == id_kind_of(id_text(subject)))
            break;
    return entry;
}

/* Told by its first key, because a change is heard as a whole. */
static bool is_kept(const struct kept *kept, const struct kept_entry *like, const struct id *subject)
{
    for (const struct kept_entry *entry = entry_of(kept, subject); entry; entry = entry->next)
        if (entry->has_maker && entry->number == like->number &&
            memcmp(entry->maker, like->maker, sizeof like->maker) == 0)
            return true;
    return false;
}

/* Nodes hear several times of a change without a place: from whoever repeats it, too. */
static bool says_no_more(const struct kept *kept, const struct heard_ending *ending)
{
    const struct kept_entry *entry = entry_of(kept, &ending->subject);

    return entry && entry->what == ending->what && entry->at_ms == ending->at_ms && entry->said_ms == ending->said_ms;
}

/* The latest in front. What was missed comes behind what was heard since. */
static void put_in_bucket(struct kept *kept, struct kept_entry *entry)
{
    struct kept_entry **place = &kept->subjects[bucket_of(entry->subject)];

    while (*place && (*place)->heard_ns > entry->heard_ns)
        place = &(*place)->next;
    entry->next = *place;
    *place = entry;
}

static void add(struct kept *kept, const struct kept_entry *like, const struct heard_ending *ending)
{
    struct kept_entry *entry = mem_alloc(sizeof *entry);

    *entry = *like;
    entry->kind = (uint8_t)id_kind_of(id_text(&ending->subject));
    entry->what = (uint8_t)ending->what;
    entry->at_ms = ending->at_ms;
    entry->said_ms = ending->said_ms;
    entry->by_replacement = ending->by_replacement;
    id_to_bytes(&ending->subject, entry->subject);
    entry->owner = owner_of(kept, &ending->account);
    entry->owner->count++;
    list_append(&entry->owner->entries, &entry->of_owner);
    list_append(&kept->entries, &entry->node);
    put_in_bucket(kept, entry);
    kept->count++;
    metric_add(METRIC_KEPT, 1);
}

static void add_all(struct kept *kept, struct change_name change, const struct heard_ending *endings, size_t count,
                    uint64_t heard_ns)
{
    struct kept_entry like = {.heard_ns = heard_ns, .number = change.number, .together = (uint16_t)count};

    like.has_maker = decode_hex(change.maker, like.maker, sizeof like.maker);
    drop_old(kept);
    if (count == 0 || count > UINT16_MAX || (like.has_maker && is_kept(kept, &like, &endings[0].subject)))
        return;
    while (kept->count > 0 && kept->count + count > KEPT_MAX)
        push_out(kept);
    for (; like.place < count; like.place++)
        if (like.has_maker || !says_no_more(kept, &endings[like.place]))
            add(kept, &like, &endings[like.place]);
    ENSURE(kept->count <= KEPT_MAX);
}

void kept_add(struct kept *kept, struct change_name change, const struct heard_ending *endings, size_t count)
{
    add_all(kept, change, endings, count, clock_boot_ns());
}

void kept_add_missed(struct kept *kept, struct change_name change, const struct heard_ending *endings, size_t count,
                     uint64_t since_ns)
{
    add_all(kept, change, endings, count, since_ns - 1);
}

/* Messages */

static bool read_what(struct text what, struct heard_ending *ending)
{
    const char letter = what.ptr && what.len > 0 ? what.ptr[0] : '\0';
    uint64_t ms = 0, said = 0;
    struct text time;

    if (letter != 'r' && letter != 'e' && letter != 'p' && letter != 'n')
        return false;
    ending->what = letter == 'r' ? ENDING_REVOKED : letter == 'n' ? ENDING_WITHDRAWN : ENDING_SCHEDULED;
    ending->by_replacement = letter == 'p';
    what = text_skip(what, 1);
    if (!text_next(&what, ':', &time) || (letter == 'n' ? time.len > 0 : !text_to_u64(time, INT64_MAX, &ms)) ||
        (letter == 'r' ? what.ptr != NULL : !text_to_u64(what, INT64_MAX, &said)))
        return false;
    ending->at_ms = (int64_t)ms;
    ending->said_ms = (int64_t)said;
    return true;
}

bool ending_read(struct text text, struct heard_ending *ret_ending)
{
    struct text key, account, what;

    return text_next(&text, '/', &key) && text_next(&text, '/', &account) && text_next(&text, '/', &what) &&
           !text.ptr &&
           (id_parse(ID_KEY, key, &ret_ending->subject) || id_parse(ID_DEVICE, key, &ret_ending->subject)) &&
           id_parse(ID_ACCOUNT, account, &ret_ending->account) && read_what(what, ret_ending);
}

/* Listing */

/* The latest change of a key or account counts; but that a key was revoked counts for ever. What a key says of its end
 * tells which is later, in whatever order it was heard. */
static bool is_overtaken(const struct kept *kept, const struct kept_entry *entry, const struct id *subject)
{
    const struct kept_entry *other = entry_of(kept, subject);

    if (entry->what == ENDING_REVOKED)
        return false;
    if (entry->said_ms == 0)
        return other != entry;
    for (; other; other = other->next)
        if (memcmp(other->subject, entry->subject, sizeof entry->subject) == 0 && other->kind == entry->kind &&
            (other->what == ENDING_REVOKED || other->said_ms > entry->said_ms))
            return true;
    return false;
}

static void copy(const struct kept *kept, const struct kept_entry *entry, struct kept_ending *ret)
{
    INVARIANT(entry->place < entry->together);
    id_from_bytes(entry->kind, entry->subject, &ret->subject);
    ret->what = is_overtaken(kept, entry, &ret->subject) ? ENDING_OVERTAKEN : (enum ending_what)entry->what;
    ret->at_ms = entry->at_ms;
    ret->said_ms = entry->said_ms;
    ret->by_replacement = entry->by_replacement;
    ret->number = entry->number;
    ret->maker[0] = '\0';
    if (entry->has_maker)
        encode_hex_text(ret->maker, sizeof ret->maker, entry->maker, sizeof entry->maker);
}

static bool is_of_change(const struct kept_ending *a, const struct kept_ending *b)
{
    return a->number == b->number && strcmp(a->maker, b->maker) == 0;
}

struct kept_ending *kept_list(struct kept *kept, bool (*wanted)(void *arg, struct change_name change), void *arg,
                              size_t *ret_count)
{
    struct kept_ending *list = NULL;
    size_t count = 0, of_change = 0;

    drop_old(kept);
    for (struct list *node = kept->entries.next; node != &kept->entries; node = node->next) {
        const struct kept_entry *entry = LIST_ENTRY(node, struct kept_entry, node);
        struct kept_ending ending = {0};

        copy(kept, entry, &ending);
        if (!wanted(arg, (struct change_name){text_of(ending.maker), ending.number}))
            continue;
        if (!list)
            list = mem_alloc(kept->count * sizeof *list);
        if (entry->place == 0)
            of_change = 1;
        else if (of_change == entry->place && count > 0 && is_of_change(&list[count - 1], &ending))
            of_change++;
        else
            of_change = 0;
        ending.completes = ending.maker[0] && of_change == entry->together;
        list[count++] = ending;
    }
    *ret_count = count;
    return list;
}

#include "auth/shared_table.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "chatelaine/check.h"
#include "core/bucket.h"
#include "core/lease_rules.h"
#include "core/limits.h"

#include <stdlib.h>
#include <unistd.h>

/* Two sets of eight places for each hash: at this load, keys hardly ever push each other out. */
enum { LOAD_PERCENT = 80, SETS_MAX = 1 << 26 };
/* Gateways count uses, and are not trusted to count well. A key cannot be used more often: a check takes longer. */
enum { USES_PER_MS = 20000, LOG_PAUSE_MS = 60000 };
enum { SCOPES_AT = 32, BUCKET_AT = 48, DEVICE_AT = 56, LIVE_AT = 57, GENERATION_AT = 32 };

_Static_assert((int)BUCKETS == (int)CHATELAINE_BUCKETS, "as chatelaine/check.h has it");
_Static_assert((int)PARTITIONS_MAX <= (int)CHATELAINE_PARTITIONS_MAX, "as chatelaine/check.h has it");
_Static_assert(sizeof(struct chatelaine_table_header) <= CHATELAINE_HEADER_BYTES, "it fits");

/* What the node itself knows of a slot. */
struct slot {
    uint32_t owner;      /* a number + 1; 0: nobody's */
    uint32_t generation; /* as in its entry, so that going round all slots reads few bytes of each */
};

struct shared_table {
    struct shared_table_settings settings;
    struct chatelaine_table_header *header;
    struct chatelaine_set *sets;
    struct chatelaine_uses_header *uses_header;
    chatelaine_uses *uses;
    size_t table_bytes, uses_bytes;
    int table_fd, uses_fd;
    struct slot *slots;
    uint32_t set_mask, slot_count;
    uint32_t next;                    /* slot whose uses are reported next */
    uint64_t round_ms, last_round_ms; /* when this round began, and the one before */
    uint64_t uses_per_ms;             /* of all readers: there are no more processors than the machine's */
    uint64_t possible, possible_ms;   /* uses that can still be true at this time, of all slots */
    uint32_t evictions;
    size_t keys;
    struct log_pause pause, header_pause;
};

/* Create and destroy */

/* Memory that cannot shrink or grow, so that nobody who has it can make the others crash. */
static void *make_memory(const char *name, size_t bytes, int seals, int *ret_fd)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *memory = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | seals) == 0) {
        *ret_fd = fd;
        return memory;
    }
    int error = errno;
    if (memory != MAP_FAILED)
        munmap(memory, bytes);
    if (fd >= 0)
        close(fd);
    errno = error;
    return NULL;
}

static uint32_t sets_for(size_t keys)
{
    size_t sets = 1;

    while (sets * CHATELAINE_WAYS * LOAD_PERCENT / 100 < keys && sets < SETS_MAX)
        sets *= 2;
    return (uint32_t)sets;
}

static struct chatelaine_uses_header uses_header_of(const struct shared_table *table)
{
    struct chatelaine_uses_header header = {.magic = CHATELAINE_USES_MAGIC, .format = CHATELAINE_TABLE_FORMAT};

    memcpy(header.run, table->header->run, sizeof header.run);
    return header;
}

static void fill_headers(struct shared_table *table, uint32_t sets)
{
    struct stat status = {0};

    *table->header = (struct chatelaine_table_header){
        .magic = CHATELAINE_TABLE_MAGIC,
        .format = CHATELAINE_TABLE_FORMAT,
        .set_count = sets,
        .partitions = table->settings.partitions,
    };
    random_public(table->header->run, sizeof table->header->run);
    *table->uses_header = uses_header_of(table);
    random_secret(table->header->hash_key, sizeof table->header->hash_key);
    if (stat("/proc/self/ns/time", &status) == 0) {
        table->header->time_namespace[0] = (uint64_t)status.st_dev;
        table->header->time_namespace[1] = (uint64_t)status.st_ino;
    }
    size_t name_bytes = strlen(table->settings.deployment) + 1;
    REQUIRE(name_bytes <= sizeof table->header->deployment);
    memcpy(table->header->deployment, table->settings.deployment, name_bytes);
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        table->header->epoch[bucket] = 1; /* not that of memory that was never written */
}

struct shared_table *shared_table_create(const struct shared_table_settings *settings)
{
    struct shared_table *table = mem_alloc(sizeof *table);
    uint32_t sets = sets_for(settings->keys_max);

    table->settings = *settings;
    table->set_mask = sets - 1;
    table->slot_count = sets * CHATELAINE_WAYS;
    table->table_bytes = CHATELAINE_HEADER_BYTES + sets * sizeof *table->sets;
    table->uses_bytes = CHATELAINE_HEADER_BYTES + table->slot_count * sizeof *table->uses;
    table->header = make_memory("chatelaine-table", table->table_bytes, F_SEAL_FUTURE_WRITE, &table->table_fd);
    table->uses_header = make_memory("chatelaine-uses", table->uses_bytes, 0, &table->uses_fd);
    if (!table->header || !table->uses_header) {
        shared_table_destroy(table);
        return NULL;
    }
    table->sets = (struct chatelaine_set *)((char *)table->header + CHATELAINE_HEADER_BYTES);
    table->uses = (chatelaine_uses *)((char *)table->uses_header + CHATELAINE_HEADER_BYTES);
    table->slots = mem_alloc_large(table->slot_count * sizeof *table->slots);
    table->round_ms = table->last_round_ms = table->possible_ms = clock_boot_ns() / CLOCK_NS_PER_MS;
    table->possible = table->uses_per_ms = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * USES_PER_MS;
    fill_headers(table, sets);
    return table;
}

void shared_table_destroy(struct shared_table *table)
{
    int error = errno;

    if (!table)
        return;
    if (table->header) {
        for (unsigned i = 0; table->uses_header && i < table->settings.partitions; i++)
            shared_table_withdraw(table, i);
        munmap(table->header, table->table_bytes);
        close(table->table_fd);
    }
    if (table->uses_header) {
        munmap(table->uses_header, table->uses_bytes);
        close(table->uses_fd);
    }
    free(table->slots);
    free(table);
    errno = error;
}

void shared_table_fds(const struct shared_table *table, int *ret_table, int *ret_uses)
{
    *ret_table = table->table_fd;
    *ret_uses = table->uses_fd;
}

/* Slots */

static struct chatelaine_entry *entry_of(const struct shared_table *table, uint32_t slot)
{
    return &table->sets[slot / CHATELAINE_WAYS].entries[slot % CHATELAINE_WAYS];
}

static _Atomic uint64_t *hint_of(const struct shared_table *table, uint32_t slot)
{
    return &table->sets[slot / CHATELAINE_WAYS].hints[slot % CHATELAINE_WAYS];
}

static uint64_t word(const struct chatelaine_entry *entry, int at)
{
    return atomic_load_explicit(&entry->words[at], memory_order_relaxed);
}

static void set_word(struct chatelaine_entry *entry, int at, uint64_t value)
{
    atomic_store_explicit(&entry->words[at], value, memory_order_relaxed);
}

static bool is_current(const struct shared_table *table, uint32_t slot)
{
    uint64_t fields = word(entry_of(table, slot), 3);

    return table->slots[slot].owner &&
           (uint32_t)fields ==
               atomic_load_explicit(&table->header->epoch[fields >> BUCKET_AT & (BUCKETS - 1)], memory_order_relaxed);
}

/* A reader that copies the entry meanwhile notices by the sequence number (Boehm: Can seqlocks get along with
 * programming language memory models?, MSPC 2012). */
static void begin_write(struct chatelaine_entry *entry)
{
    REQUIRE(!(word(entry, 0) & 1)); /* an odd sequence: somebody writes it */
    set_word(entry, 0, word(entry, 0) | 1);
    atomic_thread_fence(memory_order_release);
}

static void end_write(struct chatelaine_entry *entry, uint32_t generation)
{
    uint64_t sequence = (uint32_t)(word(entry, 0) + 1);

    ENSURE(!(sequence & 1));
    atomic_store_explicit(&entry->words[0], (uint64_t)generation << GENERATION_AT | sequence, memory_order_release);
}

/* Uses */

static void note_garbage(struct shared_table *table)
{
    metric_add(METRIC_TABLE_USES_REFUSED, 1);
    if (log_pause_is_over(&table->pause, clock_boot_ns() / CLOCK_NS_PER_MS, LOG_PAUSE_MS))
        LOG(LOG_WARN, "a gateway counts uses in the shared table that cannot be; they are not counted",
            log_int("suppressed", table->pause.suppressed));
}

static void read_principal(const struct chatelaine_entry *entry, struct key_principal *ret_key)
{
    uint64_t fields = word(entry, 3);
    uint8_t ulid[ULID_BYTES];

    *ret_key = (struct key_principal){
        .kind = fields >> DEVICE_AT & 1 ? KEY_DEVICE : KEY_API,
        .mode = fields >> LIVE_AT & 1 ? MODE_LIVE : MODE_TEST,
        .scopes = (scope_set)(fields >> SCOPES_AT & 0xffff),
    };
    for (int i = 0; i < ULID_BYTES; i++)
        ulid[i] = (uint8_t)(word(entry, 4 + i / 8) >> (56 - i % 8 * 8));
    id_from_bytes(ID_ACCOUNT, ulid, &ret_key->account);
    for (int i = 0; i < ULID_BYTES; i++)
        ulid[i] = (uint8_t)(word(entry, 6 + i / 8) >> (56 - i % 8 * 8));
    id_from_bytes(key_id_kind(ret_key->kind), ulid, &ret_key->id);
}

static uint64_t unused_under(uint32_t generation)
{
    return (uint64_t)generation << GENERATION_AT;
}

/* Takes that many of the uses that readers can have made since the node has looked at all slots. Returns how many there
 * were left: each slot by itself may claim as many as one reader can make. */
static uint32_t take_possible(struct shared_table *table, uint32_t uses)
{
    uint64_t now_ms = clock_boot_ns() / CLOCK_NS_PER_MS;
    uint64_t most = (now_ms - table->last_round_ms + 1) * table->uses_per_ms;
    uint32_t taken;

    table->possible += (now_ms - table->possible_ms) * table->uses_per_ms;
    table->possible_ms = now_ms;
    if (table->possible > most)
        table->possible = most;
    taken = uses < table->possible ? uses : (uint32_t)table->possible;
    table->possible -= taken;
    return taken;
}

/* Takes what readers have counted and lets them count under that generation. Readers that saw the slot under an earlier
 * one can count no more. Returns whether its key was used. */
static bool take_uses(struct shared_table *table, uint32_t slot, uint32_t generation)
{
    const uint32_t before = table->slots[slot].generation;
    uint64_t most = (clock_boot_ns() / CLOCK_NS_PER_MS - table->last_round_ms + 1) * USES_PER_MS;
    uint64_t seen = atomic_exchange_explicit(&table->uses[slot], unused_under(generation), memory_order_relaxed);
    uint32_t uses = (uint32_t)seen;
    struct key_principal key;

    if (seen == unused_under(before))
        return false;
    if ((uint32_t)(seen >> GENERATION_AT) != before || uses > most || table->slots[slot].owner == 0) {
        note_garbage(table);
        return false;
    }
    const uint32_t taken = take_possible(table, uses);
    if (taken < uses)
        note_garbage(table);
    read_principal(entry_of(table, slot), &key);
    if (taken > 0)
        table->settings.used(table->settings.arg, &key, taken);
    return true;
}

/* Readers compiled with an earlier check.h take no table without it. */
static void mend_uses_header(struct shared_table *table)
{
    const struct chatelaine_uses_header header = uses_header_of(table);

    if (memcmp(table->uses_header, &header, sizeof header) == 0)
        return;
    *table->uses_header = header;
    if (log_pause_is_over(&table->header_pause, clock_boot_ns() / CLOCK_NS_PER_MS, LOG_PAUSE_MS))
        LOG(LOG_WARN, "a gateway has written over the header of the shared table's counters; it is written again",
            log_int("suppressed", table->header_pause.suppressed));
}

static void begin_round(struct shared_table *table)
{
    mend_uses_header(table);
    table->next = 0;
    table->last_round_ms = table->round_ms;
    table->round_ms = clock_boot_ns() / CLOCK_NS_PER_MS;
}

/* Only a slot that was used costs more than a look. */
bool shared_table_count_uses(struct shared_table *table, size_t slots)
{
    for (; slots > 0; slots--) {
        const struct slot *slot = &table->slots[table->next];

        if (atomic_load_explicit(&table->uses[table->next], memory_order_relaxed) != unused_under(slot->generation)) {
            if (!table->settings.has_room(table->settings.arg))
                return false;
            if (take_uses(table, table->next, slot->generation) && is_current(table, table->next))
                table->settings.in_use(table->settings.arg, slot->owner - 1);
        }
        if (++table->next == table->slot_count)
            begin_round(table);
    }
    return true;
}

/* Entries */

static void empty_slot(struct shared_table *table, uint32_t slot)
{
    struct chatelaine_entry *entry = entry_of(table, slot);
    uint32_t generation = table->slots[slot].generation + 1;

    begin_write(entry);
    atomic_store_explicit(hint_of(table, slot), 0, memory_order_relaxed);
    take_uses(table, slot, generation);
    for (int at = 1; at < CHATELAINE_ENTRY_WORDS; at++)
        set_word(entry, at, 0);
    end_write(entry, generation);
    INVARIANT(table->keys > 0 || table->slots[slot].owner == 0);
    table->keys -= table->slots[slot].owner != 0;
    table->slots[slot] = (struct slot){.generation = generation};
    metric_set(METRIC_TABLE_KEYS, (int64_t)table->keys);
}

bool shared_table_holds(const struct shared_table *table, uint32_t slot, uint32_t owner)
{
    return table->slots[slot].owner == owner + 1 && is_current(table, slot);
}

void shared_table_remove(struct shared_table *table, uint32_t slot, uint32_t owner)
{
    if (table->slots[slot].owner == owner + 1)
        empty_slot(table, slot);
    atomic_thread_fence(memory_order_seq_cst); /* before any acknowledgement leaves */
}

/* Where a key may go in a set. */
struct table_places {
    uint32_t same, free; /* slots; SHARED_TABLE_NONE: there is none */
    unsigned free_count;
};

static struct table_places places_in(const struct shared_table *table, uint32_t set, uint64_t hint)
{
    struct table_places places = {SHARED_TABLE_NONE, SHARED_TABLE_NONE, 0};

    for (uint32_t slot = set * CHATELAINE_WAYS; slot < (set + 1) * CHATELAINE_WAYS; slot++) {
        if (atomic_load_explicit(hint_of(table, slot), memory_order_relaxed) == hint)
            places.same = slot;
        if (!is_current(table, slot)) {
            places.free = slot;
            places.free_count++;
        }
    }
    return places;
}

/* Its own slot, so that readers find no older entry of it; or one in the emptier set; or else some key makes room. */
static uint32_t choose_slot(struct shared_table *table, const uint64_t hash[2])
{
    uint32_t sets[2] = {chatelaine_set_of(hash, 0, table->set_mask), chatelaine_set_of(hash, 1, table->set_mask)};
    struct table_places first = places_in(table, sets[0], hash[0]), second = places_in(table, sets[1], hash[0]);

    if (first.same != SHARED_TABLE_NONE)
        return first.same;
    if (second.same != SHARED_TABLE_NONE)
        return second.same;
    if (first.free_count + second.free_count > 0)
        return first.free_count >= second.free_count ? first.free : second.free;
    table->evictions++;
    return sets[table->evictions & 1] * CHATELAINE_WAYS + (table->evictions >> 1) % CHATELAINE_WAYS;
}

static uint64_t load_be(const uint8_t bytes[8])
{
    uint64_t value = 0;

    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

uint32_t shared_table_put(struct shared_table *table, uint32_t owner, struct text secret, unsigned bucket,
                          const struct key_packed *key)
{
    uint64_t hash[2];

    if (secret.len > CHATELAINE_SECRET_MAX)
        return SHARED_TABLE_NONE;
    chatelaine_hash(table->header->hash_key, secret.ptr, secret.len, hash);
    const uint32_t slot = choose_slot(table, hash);
    REQUIRE(slot < table->slot_count && bucket < BUCKETS && owner < UINT32_MAX);
    empty_slot(table, slot);

    struct chatelaine_entry *entry = entry_of(table, slot);
    begin_write(entry);
    set_word(entry, 1, hash[0]);
    set_word(entry, 2, hash[1]);
    set_word(entry, 3,
             atomic_load_explicit(&table->header->epoch[bucket], memory_order_relaxed) |
                 (uint64_t)key->scopes << SCOPES_AT | (uint64_t)bucket << BUCKET_AT |
                 (uint64_t)key->is_device << DEVICE_AT | (uint64_t)key->is_live << LIVE_AT);
    set_word(entry, 4, load_be(key->account));
    set_word(entry, 5, load_be(key->account + 8));
    set_word(entry, 6, load_be(key->id));
    set_word(entry, 7, load_be(key->id + 8));
    end_write(entry, table->slots[slot].generation);
    atomic_store_explicit(hint_of(table, slot), hash[0], memory_order_relaxed);
    table->slots[slot].owner = owner + 1;
    table->keys++;
    ENSURE(table->keys <= table->slot_count && is_current(table, slot));
    metric_set(METRIC_TABLE_KEYS, (int64_t)table->keys);
    return slot;
}

/* All entries of a bucket at once, however many there are. Their slots are free from now on. */
void shared_table_clear_bucket(struct shared_table *table, unsigned bucket)
{
    const uint32_t epoch = atomic_fetch_add_explicit(&table->header->epoch[bucket], 1, memory_order_seq_cst) + 1;

    if (epoch == 0) /* entries of the last time that it was 0 */
        for (uint32_t slot = 0; slot < table->slot_count; slot++)
            empty_slot(table, slot);
}

void shared_table_set_policy(struct shared_table *table, uint32_t policy)
{
    atomic_store_explicit(&table->header->policy, policy, memory_order_release);
}

/* Leases */

void shared_table_set_lease(struct shared_table *table, unsigned partition, uint64_t until_ns)
{
    REQUIRE(partition < table->settings.partitions);
    atomic_store_explicit(&table->header->lease_until_ns[partition], until_ns, memory_order_release);
}

void shared_table_withdraw(struct shared_table *table, unsigned partition)
{
    if (!RULE(RULE_TABLE_SESSION))
        return;
    shared_table_set_lease(table, partition, 0);
    for (unsigned bucket = partition; bucket < BUCKETS; bucket += table->settings.partitions)
        shared_table_clear_bucket(table, bucket);
}

/* What is there */

size_t shared_table_slots(const struct shared_table *table)
{
    return table->slot_count;
}

size_t shared_table_keys(const struct shared_table *table)
{
    return table->keys;
}

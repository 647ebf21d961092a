/* The node's side of the shared table, beside gateways that write whatever they like into the counters of uses. The
 * input is a sequence of steps: the node shares, removes, clears and counts; readers check keys, now or under an entry
 * that they saw earlier; and, unless the input says that all are honest, garbage is written. A model says what must
 * come of it: readers accept what is shared and nothing else; of honest readers each use is reported exactly once; and
 * whatever is written, only uses of keys that are in the table are reported, and no more than there can be. */
#include "auth/shared_table.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "chatelaine/check.h"
#include "core/bucket.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* Few slots for many keys, which push each other out. */
enum { KEYS = 32, SHARED_AT_MOST = 8, SLOTS_MAX = 64, PARTITIONS = 4, USED_BUCKETS = 8, SEEN = 16, STEPS_MAX = 2000 };
enum { CHECKS_MAX = 8, SECRET_BYTES = 32, USES_PER_MS = 20000, NOBODY = -1 };

struct model_key {
    uint32_t slot;   /* that it got last; SHARED_TABLE_NONE: it was never shared */
    unsigned shared; /* times */
    unsigned bucket;
    uint32_t epoch; /* of the bucket, then */
    uint64_t used, reported;
};

/* What a reader has found, and goes on with later. */
struct seen {
    uint32_t slot, generation;
    int key;
    unsigned shared; /* of the key, then */
};

struct world {
    struct shared_table *table;
    struct chatelaine_table reader;
    uint64_t began_ms;
    bool is_honest, has_room;
    struct model_key keys[KEYS];
    int owners[SLOTS_MAX];      /* keys by slot, or NOBODY */
    uint64_t counts[SLOTS_MAX]; /* of uses by slot, with the generations, before the step under way */
    uint32_t epochs[USED_BUCKETS];
    bool has_lease[PARTITIONS];
    struct seen seen[SEEN];
    unsigned seen_count;
};

/* The steps, two bytes each or more; when they are over, zeros. */
struct input {
    const uint8_t *at, *end;
};

static uint8_t next(struct input *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

static uint64_t next_word(struct input *input)
{
    uint64_t word = 0;

    for (int i = 0; i < 8; i++)
        word = word << 8 | next(input);
    return word;
}

/* Keys */

static struct text secret_of(unsigned key, char storage[SECRET_BYTES])
{
    int length = snprintf(storage, SECRET_BYTES, "svc_sk_live_%u", key);

    return (struct text){storage, (size_t)length};
}

static struct key_packed packed_of(unsigned key)
{
    struct key_packed packed = {.scopes = (uint16_t)(SCOPE_PATIENTS_READ | (key & 1)), .is_live = true};

    packed.id[0] = packed.account[0] = 1;
    packed.id[15] = (uint8_t)key;
    packed.account[15] = (uint8_t)(key % USED_BUCKETS);
    return packed;
}

static int key_of(const struct id *id)
{
    for (unsigned key = 0; key < KEYS; key++) {
        const struct key_packed packed = packed_of(key);
        struct id own;

        id_from_bytes(ID_KEY, packed.id, &own);
        if (text_equal(id_text(&own), id_text(id)))
            return (int)key;
    }
    return NOBODY;
}

static bool is_in_table(const struct world *w, unsigned key)
{
    return w->keys[key].slot != SHARED_TABLE_NONE && w->owners[w->keys[key].slot] == (int)key;
}

static uint32_t generation_of(const struct world *w, uint32_t slot)
{
    const struct chatelaine_set *set = &w->reader.sets[slot / CHATELAINE_WAYS];

    return (uint32_t)(atomic_load(&set->entries[slot % CHATELAINE_WAYS].words[0]) >> 32);
}

static void note_counts(struct world *w)
{
    for (size_t slot = 0; slot < shared_table_slots(w->table); slot++)
        w->counts[slot] = atomic_load(&w->reader.uses[slot]);
}

static void on_used(void *arg, const struct key_principal *principal, uint32_t uses)
{
    struct world *w = arg;
    uint64_t ms = clock_boot_ns() / CLOCK_NS_PER_MS - w->began_ms + 1;
    int key = key_of(&principal->id);

    CHECK(w->has_room && key != NOBODY && is_in_table(w, (unsigned)key));
    CHECK(principal->scopes == packed_of((unsigned)key).scopes);
    CHECK(uses > 0 && uses == (uint32_t)w->counts[w->keys[key].slot] && uses <= ms * USES_PER_MS);
    CHECK(w->counts[w->keys[key].slot] >> 32 == generation_of(w, w->keys[key].slot));
    w->keys[key].reported += uses;
}

static void on_in_use(void *arg, uint32_t owner)
{
    const struct world *w = arg;

    CHECK(owner < KEYS && is_in_table(w, owner) && w->keys[owner].epoch == w->epochs[w->keys[owner].bucket]);
}

static bool has_room(void *arg)
{
    const struct world *w = arg;

    return w->has_room;
}

/* The node's steps */

static void share(struct world *w, unsigned number, unsigned bucket)
{
    const struct key_packed packed = packed_of(number);
    struct model_key *key = &w->keys[number];
    char storage[SECRET_BYTES];

    note_counts(w);
    uint32_t slot = shared_table_put(w->table, number, secret_of(number, storage), bucket, &packed);

    CHECK(slot < shared_table_slots(w->table) && (!is_in_table(w, number) || key->slot == slot));
    w->owners[slot] = (int)number;
    key->slot = slot;
    key->shared++;
    key->bucket = bucket;
    key->epoch = w->epochs[bucket];
}

static void unshare(struct world *w, unsigned number)
{
    struct model_key *key = &w->keys[number];

    if (key->slot == SHARED_TABLE_NONE)
        return;
    note_counts(w);
    shared_table_remove(w->table, key->slot, number);
    if (w->owners[key->slot] == (int)number)
        w->owners[key->slot] = NOBODY;
}

static void clear(struct world *w, unsigned bucket)
{
    shared_table_clear_bucket(w->table, bucket);
    w->epochs[bucket]++;
}

static void withdraw(struct world *w, unsigned partition)
{
    shared_table_withdraw(w->table, partition);
    w->has_lease[partition] = false;
    for (unsigned bucket = partition; bucket < USED_BUCKETS; bucket += PARTITIONS)
        w->epochs[bucket]++;
}

static void renew(struct world *w, unsigned partition)
{
    shared_table_set_lease(w->table, partition, clock_boot_ns() + UINT64_C(3600000) * CLOCK_NS_PER_MS);
    w->has_lease[partition] = true;
}

static void count_uses(struct world *w, unsigned slots, bool may)
{
    note_counts(w);
    w->has_room = may;
    CHECK(shared_table_count_uses(w->table, slots) || !may);
    w->has_room = true;
}

/* The readers' */

static void check(struct world *w, unsigned number, unsigned times)
{
    struct model_key *key = &w->keys[number];
    bool may = is_in_table(w, number) && key->epoch == w->epochs[key->bucket] && w->has_lease[key->bucket % PARTITIONS];
    struct chatelaine_principal who;
    char storage[SECRET_BYTES];
    struct text secret = secret_of(number, storage);

    CHECK(shared_table_holds(w->table, key->slot == SHARED_TABLE_NONE ? 0 : key->slot, number) ==
          (is_in_table(w, number) && key->epoch == w->epochs[key->bucket]));
    for (unsigned i = 0; i < times; i++) {
        bool is_accepted = chatelaine_check(&w->reader, secret.ptr, secret.len, SCOPE_PATIENTS_READ, &who);

        CHECK(is_accepted == may || (may && !w->is_honest)); /* it cannot count in garbage */
        CHECK(!is_accepted || who.scopes == packed_of(number).scopes);
        key->used += is_accepted;
    }
}

static void see(struct world *w, unsigned number)
{
    struct model_key *key = &w->keys[number];
    uint64_t hash[2], words[CHATELAINE_ENTRY_WORDS];
    char storage[SECRET_BYTES];
    struct text secret = secret_of(number, storage);
    uint32_t slot;

    chatelaine_hash(w->reader.hash_key, secret.ptr, secret.len, hash);
    bool is_found = chatelaine_find(&w->reader, hash, &slot, words);
    CHECK(is_found == is_in_table(w, number) && (!is_found || slot == key->slot));
    if (is_found)
        w->seen[w->seen_count++ % SEEN] = (struct seen){slot, (uint32_t)(words[0] >> 32), (int)number, key->shared};
}

/* A reader was paused between the entry and the counter. */
static void count_late(struct world *w, unsigned which)
{
    const struct seen *seen = &w->seen[which % SEEN];

    if (which % SEEN >= w->seen_count || !chatelaine_count_use(&w->reader.uses[seen->slot], seen->generation))
        return;
    bool is_same = w->owners[seen->slot] == seen->key && w->keys[seen->key].shared == seen->shared;
    CHECK(is_same || !w->is_honest);
    w->keys[seen->key].used++;
}

/* Any bits, or only another count. */
static void write_garbage(struct world *w, unsigned slot, bool keeps_generation, uint64_t word)
{
    chatelaine_uses *uses = &w->reader.uses[slot % shared_table_slots(w->table)];

    if (w->is_honest)
        return;
    if (keeps_generation)
        word = (atomic_load(uses) & ~(uint64_t)UINT32_MAX) | (uint32_t)word;
    atomic_store(uses, word);
}

static void step(struct world *w, struct input *input)
{
    uint8_t what = next(input), which = next(input);

    switch (what % 12) {
    case 0:
    case 1:
        share(w, which % KEYS, which / KEYS % USED_BUCKETS);
        break;
    case 2:
        unshare(w, which % KEYS);
        break;
    case 3:
        clear(w, which % USED_BUCKETS);
        break;
    case 4:
        (which & 64 ? withdraw : renew)(w, which % PARTITIONS);
        break;
    case 5:
        count_uses(w, which, what & 64);
        break;
    case 6:
    case 7:
        check(w, which % KEYS, which / KEYS % CHECKS_MAX + 1);
        break;
    case 8:
        see(w, which % KEYS);
        break;
    case 9:
        count_late(w, which);
        break;
    default:
        write_garbage(w, which, what & 64, next_word(input));
    }
}

/* Begin and end */

static void begin(struct world *w)
{
    int fds[2];

    *w = (struct world){.began_ms = clock_boot_ns() / CLOCK_NS_PER_MS, .has_room = true};
    for (unsigned i = 0; i < KEYS; i++)
        w->keys[i].slot = SHARED_TABLE_NONE;
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        w->owners[i] = NOBODY;
    w->table = shared_table_create(&(struct shared_table_settings){.keys_max = SHARED_AT_MOST,
                                                                   .partitions = PARTITIONS,
                                                                   .deployment = "",
                                                                   .used = on_used,
                                                                   .in_use = on_in_use,
                                                                   .has_room = has_room,
                                                                   .arg = w});
    CHECK(w->table && shared_table_slots(w->table) <= SLOTS_MAX);
    shared_table_fds(w->table, &fds[0], &fds[1]);
    fds[0] = dup(fds[0]);
    fds[1] = dup(fds[1]);
    chatelaine_table_init(&w->reader, "", CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    CHECK(chatelaine_accept_table(&w->reader, fds));
    for (unsigned partition = 0; partition < PARTITIONS; partition++)
        renew(w, partition);
}

static void end(struct world *w)
{
    count_uses(w, (unsigned)shared_table_slots(w->table), true);
    for (unsigned key = 0; key < KEYS && w->is_honest; key++)
        CHECK(w->keys[key].reported == w->keys[key].used);
    chatelaine_table_finish(&w->reader);
    shared_table_destroy(w->table);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct world world;
    struct input input = {bytes, bytes + count};

    log_configure(LOG_ERROR, LOG_LOGFMT); /* garbage is told */
    begin(&world);
    world.is_honest = next(&input) & 1;
    for (unsigned i = 0; i < STEPS_MAX && input.at < input.end; i++)
        step(&world, &input);
    end(&world);
    return 0;
}

/* The reader of the shared table (chatelaine/check.h), in memory that anybody may have written. The input is a program:
 * it chooses the sizes that the header claims and those that the memory has, puts keys, overwrites words anywhere, and
 * checks keys. Beyond "reads and writes nothing outside": a key is accepted only by an entry that is this key's, under
 * a lease, in its epoch, with the scopes, and counted for that entry's generation. */
#include "base/check.h"
#include "base/mem.h"
#include "chatelaine/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

enum { PAGE = 4096, SETS_MAX = 16, SECRETS = 4, SCOPES = 0x0a05, PROGRAM_MAX_BYTES = 4096 };
enum step { PUT, WRITE_TABLE, WRITE_USES, SET_LEASE, SET_EPOCH, CHECK_KEY, STEPS };

static const char *const SECRET[SECRETS] = {"", "sk_live_a", "sk_test_of_sixteen", "sk_live_with_more_than_one_block"};

struct program {
    const uint8_t *bytes;
    size_t count;
};

/* Memory that ends where a page ends that nobody may touch. */
struct region {
    char *mapping, *start;
    size_t mapped, bytes;
};

static uint64_t take(struct program *program, size_t count)
{
    uint64_t value = 0;

    for (size_t i = 0; i < count && program->count > 0; i++, program->bytes++, program->count--)
        value |= (uint64_t)*program->bytes << 8 * i;
    return value;
}

static void region_make(struct region *region, size_t bytes)
{
    region->bytes = bytes;
    region->mapped = (bytes + PAGE - 1) / PAGE * PAGE + PAGE;
    region->mapping = mmap(NULL, region->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(region->mapping != MAP_FAILED);
    region->start = region->mapping + region->mapped - PAGE - bytes;
    CHECK(mprotect(region->start + bytes, PAGE, PROT_NONE) == 0);
}

static void region_write(const struct region *region, size_t word, uint64_t value)
{
    memcpy(region->start + word % (region->bytes / sizeof value) * sizeof value, &value, sizeof value);
}

static void fill_headers(const struct region *table, const struct region *uses, uint32_t set_count, uint32_t partitions)
{
    struct chatelaine_table_header *header = (struct chatelaine_table_header *)table->start;
    struct chatelaine_uses_header *uses_header = (struct chatelaine_uses_header *)uses->start;

    header->magic = CHATELAINE_TABLE_MAGIC;
    uses_header->magic = CHATELAINE_USES_MAGIC;
    header->format = uses_header->format = CHATELAINE_TABLE_FORMAT;
    header->set_count = set_count;
    header->partitions = partitions;
    header->hash_key[0] = 0x0706050403020100;
}

/* Only what the memory has room for. */
static void put(struct program *program, const struct chatelaine_table *table, const char *secret)
{
    uint64_t hash[2], bucket = take(program, 1), slot_of = take(program, 1), generation = take(program, 1);
    uint32_t set, way = slot_of >> 1 & (CHATELAINE_WAYS - 1);
    _Atomic uint64_t *words;

    chatelaine_hash(table->hash_key, secret, strlen(secret), hash);
    set = chatelaine_set_of(hash, slot_of & 1, table->set_mask);
    words = ((struct chatelaine_set *)(uintptr_t)table->sets)[set].entries[way].words;
    atomic_store(&((struct chatelaine_set *)(uintptr_t)table->sets)[set].hints[way], hash[0]);
    words[0] = generation << 32;
    words[1] = hash[0];
    words[2] = hash[1];
    words[3] = (uint64_t)SCOPES << 32 | bucket << 48 | (generation & 3) << 56;
    words[4] = words[5] = words[6] = words[7] = ~generation;
    table->uses[set * CHATELAINE_WAYS + way] = generation << 32;
}

/* Whether an entry says so, seen without the reader's search. */
static bool may_be_accepted(const struct chatelaine_table *table, const uint64_t hash[2], uint32_t scopes,
                            uint64_t now_ns, uint32_t slot)
{
    const struct chatelaine_set *set = &table->sets[slot / CHATELAINE_WAYS];
    const _Atomic uint64_t *words = set->entries[slot % CHATELAINE_WAYS].words;
    uint32_t bucket = words[3] >> 48 & 0xff;

    return words[1] == hash[0] && words[2] == hash[1] && words[0] % 2 == 0 &&
           table->header->epoch[bucket] == (uint32_t)words[3] &&
           table->header->lease_until_ns[bucket % table->header->partitions] > now_ns &&
           (words[3] >> 32 & 0xffff & scopes) == scopes && table->uses[slot] >> 32 == words[0] >> 32;
}

static void expect_id(const char *id, const char *prefix)
{
    CHECK(strnlen(id, 32) == strlen(prefix) + 26 && strncmp(id, prefix, strlen(prefix)) == 0);
}

static void check_key(const struct chatelaine_table *table, const char *secret, uint32_t scopes)
{
    uint32_t slots = (table->set_mask + 1) * CHATELAINE_WAYS, counted = 0;
    uint64_t now_ns = chatelaine_now_ns(), hash[2], before[SETS_MAX * CHATELAINE_WAYS];
    struct chatelaine_principal who;
    bool is_accepted;

    chatelaine_hash(table->hash_key, secret, strlen(secret), hash);
    for (uint32_t slot = 0; slot < slots; slot++)
        before[slot] = table->uses[slot];
    is_accepted = chatelaine_check(table, secret, strlen(secret), scopes, &who);
    for (uint32_t slot = 0; slot < slots; slot++) {
        uint64_t uses = table->uses[slot] - before[slot];

        CHECK(uses <= 1 && before[slot] >> 32 == table->uses[slot] >> 32);
        CHECK(uses == 0 || may_be_accepted(table, hash, scopes, now_ns, slot));
        counted += (uint32_t)uses;
    }
    CHECK(counted == is_accepted);
    if (!is_accepted)
        return;
    CHECK((scopes & ~who.scopes) == 0);
    expect_id(who.account, "acct_");
    expect_id(who.principal, who.is_device ? "dev_" : "key_");
}

static void run_step(struct program *program, const struct chatelaine_table *table, const struct region *memory,
                     const struct region *uses)
{
    struct chatelaine_table_header *header = (struct chatelaine_table_header *)(uintptr_t)table->header;
    uint8_t what = (uint8_t)take(program, 1);
    const char *secret = SECRET[what / STEPS % SECRETS];
    size_t at;

    switch ((enum step)(what % STEPS)) {
    case PUT:
        put(program, table, secret);
        break;
    case WRITE_TABLE: /* but the numbers of sets and partitions, which count only when the table is taken */
        at = CHATELAINE_HEADER_BYTES / sizeof(uint64_t) + take(program, 2);
        region_write(memory, at < memory->bytes / sizeof(uint64_t) ? at : memory->bytes / sizeof(uint64_t) - 1,
                     take(program, 8));
        break;
    case WRITE_USES:
        at = take(program, 2);
        region_write(uses, at, take(program, 8));
        break;
    case SET_LEASE:
        at = take(program, 1);
        header->lease_until_ns[at] = take(program, 8);
        break;
    case SET_EPOCH:
        at = take(program, 1);
        header->epoch[at] = (uint32_t)take(program, 1);
        break;
    case CHECK_KEY:
        check_key(table, secret, (uint32_t)take(program, 4));
        break;
    case STEPS:
        UNREACHABLE();
    }
}

/* As chatelaine_accept_table() takes a table that it has mapped. */
static bool take_table(struct chatelaine_table *table, const struct region *memory, const struct region *uses)
{
    chatelaine_table_init(table, "", CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    table->table_bytes = memory->bytes;
    table->uses_bytes = uses->bytes;
    table->header = (const struct chatelaine_table_header *)memory->start;
    table->uses_header = (struct chatelaine_uses_header *)uses->start;
    table->sets = (const struct chatelaine_set *)(memory->start + CHATELAINE_HEADER_BYTES);
    table->uses = (chatelaine_uses *)(uses->start + CHATELAINE_HEADER_BYTES);
    memcpy(table->hash_key, table->header->hash_key, sizeof table->hash_key);
    return chatelaine_is_sound(table, table->header);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct program program = {bytes, count < PROGRAM_MAX_BYTES ? count : PROGRAM_MAX_BYTES};
    uint32_t set_count = (uint32_t)take(&program, 4), partitions = (uint32_t)take(&program, 4);
    size_t sets = take(&program, 1) % (SETS_MAX + 1), slots = take(&program, 1) % (SETS_MAX * CHATELAINE_WAYS + 1);
    size_t overwritten = take(&program, 1) % 8;
    struct region memory, uses;
    struct chatelaine_table table;

    region_make(&memory, CHATELAINE_HEADER_BYTES + sets * sizeof(struct chatelaine_set));
    region_make(&uses, CHATELAINE_HEADER_BYTES + slots * sizeof(chatelaine_uses));
    fill_headers(&memory, &uses, set_count, partitions);
    for (size_t i = 0; i < overwritten; i++) {
        size_t word = take(&program, 1);

        region_write(i % 2 == 0 ? &memory : &uses, word, take(&program, 8));
    }
    if (take_table(&table, &memory, &uses)) {
        CHECK(table.set_mask < sets && (table.set_mask + 1) * CHATELAINE_WAYS <= slots);
        CHECK(table.partition_mask < CHATELAINE_PARTITIONS_MAX);
        CHECK((table.set_mask & (table.set_mask + 1)) == 0 && (table.partition_mask & (table.partition_mask + 1)) == 0);
        while (program.count > 0)
            run_step(&program, &table, &memory, &uses);
    }
    munmap(memory.mapping, memory.mapped);
    munmap(uses.mapping, uses.mapped);
    return 0;
}

#include "made_table.h"
#include "base/check.h"
#include "base/random.h"
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#define DAY_NS (UINT64_C(86400) * 1000000000)

static void *make_memfd(size_t bytes, int *ret_fd)
{
    void *memory;

    *ret_fd = memfd_create("made_table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(*ret_fd >= 0 && ftruncate(*ret_fd, (off_t)bytes) == 0);
    CHECK(fcntl(*ret_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void *make_memory(size_t bytes)
{
    void *memory = calloc(1, bytes);

    CHECK(memory);
    return memory;
}

static void fill_headers(struct made_table *made, uint32_t set_count)
{
    struct chatelaine_table_header *header = made->header;
    struct stat status = {0};

    header->magic = CHATELAINE_TABLE_MAGIC;
    header->format = made->uses_header->format = CHATELAINE_TABLE_FORMAT;
    header->set_count = set_count;
    made->uses_header->magic = CHATELAINE_USES_MAGIC;
    random_public(header->run, sizeof header->run);
    memcpy(made->uses_header->run, header->run, sizeof header->run);
    random_public(header->hash_key, sizeof header->hash_key);
    if (stat("/proc/self/ns/time", &status) == 0) {
        header->time_namespace[0] = status.st_dev;
        header->time_namespace[1] = status.st_ino;
    }
    header->partitions = MADE_TABLE_PARTITIONS;
    snprintf(header->deployment, sizeof header->deployment, "%s", MADE_TABLE_DEPLOYMENT);
    for (int bucket = 0; bucket < CHATELAINE_BUCKETS; bucket++)
        atomic_store(&header->epoch[bucket], MADE_TABLE_EPOCH);
    made_table_set_leases(made, chatelaine_now_ns() + DAY_NS);
}

static void make(struct made_table *made, uint32_t set_count, bool is_shared)
{
    *made = (struct made_table){.fds = {-1, -1}};
    made->table_bytes = CHATELAINE_HEADER_BYTES + set_count * sizeof(struct chatelaine_set);
    made->uses_bytes = CHATELAINE_HEADER_BYTES + set_count * CHATELAINE_WAYS * sizeof(chatelaine_uses);
    if (is_shared) {
        made->header = make_memfd(made->table_bytes, &made->fds[0]);
        made->uses_header = make_memfd(made->uses_bytes, &made->fds[1]);
    } else {
        made->header = make_memory(made->table_bytes);
        made->uses_header = make_memory(made->uses_bytes);
    }
    made->sets = (struct chatelaine_set *)((char *)made->header + CHATELAINE_HEADER_BYTES);
    made->uses = (chatelaine_uses *)((char *)made->uses_header + CHATELAINE_HEADER_BYTES);
    fill_headers(made, set_count);
}

void made_table_in_memory(struct made_table *made, uint32_t set_count)
{
    make(made, set_count, false);
}

void made_table_in_memfds(struct made_table *made, uint32_t set_count)
{
    make(made, set_count, true);
}

void made_table_finish(struct made_table *made)
{
    if (made->fds[0] < 0) {
        free(made->header);
        free(made->uses_header);
        return;
    }
    munmap(made->header, made->table_bytes);
    munmap(made->uses_header, made->uses_bytes);
    close(made->fds[0]);
    close(made->fds[1]);
}

void made_table_lend(const struct made_table *made, struct chatelaine_table *ret_reader)
{
    chatelaine_table_init(ret_reader, "/nowhere", CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    ret_reader->header = made->header;
    ret_reader->sets = made->sets;
    ret_reader->uses_header = made->uses_header;
    ret_reader->uses = made->uses;
    ret_reader->table_bytes = made->table_bytes;
    ret_reader->uses_bytes = made->uses_bytes;
    ret_reader->set_mask = made->header->set_count - 1;
    ret_reader->partition_mask = made->header->partitions - 1;
    memcpy(ret_reader->hash_key, made->header->hash_key, sizeof ret_reader->hash_key);
    ret_reader->trouble = CHATELAINE_FINE;
}

uint32_t made_table_slot(const struct made_table *made, const char *secret, int which, uint32_t way)
{
    uint64_t hash[2];

    chatelaine_hash(made->header->hash_key, secret, strlen(secret), hash);
    return chatelaine_set_of(hash, which, made->header->set_count - 1) * CHATELAINE_WAYS + way;
}

static uint64_t load_be(const uint8_t bytes[8])
{
    uint64_t value;

    memcpy(&value, bytes, sizeof value);
    return be64toh(value);
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

uint32_t made_table_put(struct made_table *made, uint32_t slot, const struct made_key *key)
{
    struct chatelaine_set *set = &made->sets[slot / CHATELAINE_WAYS];
    struct chatelaine_entry *entry = &set->entries[slot % CHATELAINE_WAYS];
    uint64_t first = atomic_load(&entry->words[0]), hash[2], former;
    uint32_t sequence = (uint32_t)first;
    uint64_t generation = (first >> 32) + 1;

    chatelaine_hash(made->header->hash_key, key->secret, strlen(key->secret), hash);
    store(&entry->words[0], (first >> 32) << 32 | (uint32_t)(sequence + 1));
    atomic_thread_fence(memory_order_release);
    former = atomic_exchange(&made->uses[slot], generation << 32);
    store(&set->hints[slot % CHATELAINE_WAYS], hash[0]);
    store(&entry->words[1], hash[0]);
    store(&entry->words[2], hash[1]);
    store(&entry->words[3], MADE_TABLE_EPOCH | (uint64_t)key->scopes << 32 | (uint64_t)key->bucket << 48 |
                                (uint64_t)key->is_device << 56 | (uint64_t)key->is_live << 57);
    for (int half = 0; half < 2; half++) {
        store(&entry->words[4 + half], load_be(key->account + 8 * half));
        store(&entry->words[6 + half], load_be(key->principal + 8 * half));
    }
    atomic_store_explicit(&entry->words[0], generation << 32 | (uint32_t)(sequence + 2), memory_order_release);
    return (uint32_t)former;
}

uint32_t made_table_generation(const struct made_table *made, uint32_t slot)
{
    return (uint32_t)(atomic_load(&made->sets[slot / CHATELAINE_WAYS].entries[slot % CHATELAINE_WAYS].words[0]) >> 32);
}

uint32_t made_table_uses(const struct made_table *made, uint32_t slot)
{
    return (uint32_t)atomic_load(&made->uses[slot]);
}

void made_table_set_leases(struct made_table *made, uint64_t until_ns)
{
    for (int partition = 0; partition < CHATELAINE_PARTITIONS_MAX; partition++)
        atomic_store(&made->header->lease_until_ns[partition], until_ns);
}

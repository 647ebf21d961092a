/* Whether a key is accepted, decided in the caller's own process: a Chatelaine node on the same machine shares its
 * decisions in memory (chatelaine serve --table PATH). A check takes well under a microsecond, and a revocation reaches
 * it before it is answered, as it reaches the node (src/auth/README.md#the-shared-table has the rules and the proof).
 *
 *     struct chatelaine_table table;
 *     struct chatelaine_principal who;
 *
 *     chatelaine_table_init(&table, path, CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
 *     chatelaine_table_refresh(&table);            // every second, from a timer; never blocks
 *     if (chatelaine_check(&table, secret, length, CHATELAINE_PATIENTS_READ, &who))
 *         ...                                      // accepted, and counted as one use
 *     else
 *         ...                                      // ask the node over HTTP: this says nothing
 *     chatelaine_table_finish(&table);
 *
 * This only ever accepts. Whatever it does not accept, the node decides, so a caller that cannot reach the table is
 * slower and never wrong. Call chatelaine_check() after the request has come, never before, and use the answer for that
 * request alone. Where the node's policy lets everybody read, nobody needs to be checked: a key changes nothing there.
 *
 * C11 and Linux (-std=gnu11 -D_GNU_SOURCE); no other file, no allocation, no thread. Only chatelaine_table_refresh()
 * makes system calls. A struct chatelaine_table belongs to one thread; each process and each thread has its own. */
#ifndef CHATELAINE_CHECK_H
#define CHATELAINE_CHECK_H
#ifndef _GNU_SOURCE
#error "chatelaine/check.h needs -D_GNU_SOURCE, or #define _GNU_SOURCE before the first header"
#endif
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Scopes, as bits. */
enum chatelaine_scope {
    CHATELAINE_EXCHANGES_READ = 1 << 0,
    CHATELAINE_EXCHANGES_WRITE = 1 << 1,
    CHATELAINE_PATIENTS_READ = 1 << 2,
    CHATELAINE_PATIENTS_WRITE = 1 << 3,
    CHATELAINE_WEBHOOKS_MANAGE = 1 << 4,
    CHATELAINE_KEYS_MANAGE = 1 << 5,
    CHATELAINE_AUDIT_READ = 1 << 6,
    CHATELAINE_TEAM_MANAGE = 1 << 7,
    CHATELAINE_ORG_MANAGE = 1 << 8,
    CHATELAINE_USAGE_READ = 1 << 9,
    CHATELAINE_DOCUMENTS_WRITE = 1 << 10,
    CHATELAINE_SANDBOX_MANAGE = 1 << 11,
};

/* Who asks: what the node sends as X-Auth-* headers. Ids are NUL-terminated. */
struct chatelaine_principal {
    char account[32];   /* X-Auth-Account */
    char principal[32]; /* X-Auth-Principal */
    uint32_t scopes;    /* X-Auth-Scopes, as bits */
    bool is_device;     /* X-Auth-Kind: device_key, otherwise api_key */
    bool is_live;       /* X-Auth-Mode: live, otherwise test. X-Auth-Billable is the same */
};

/* Why there is no table to ask, at present. */
enum chatelaine_trouble {
    CHATELAINE_FINE,
    CHATELAINE_NOT_ASKED_YET, /* chatelaine_table_refresh() was not called */
    CHATELAINE_UNREACHABLE,   /* nobody listens there; see the error */
    CHATELAINE_WAITING,       /* connected; the node has not answered yet */
    CHATELAINE_WRONG_OWNER,   /* somebody else listens there */
    CHATELAINE_WRONG_FORMAT,  /* not a table, or one of another version: install the node and this of one version */
    CHATELAINE_WRONG_CLOCK,   /* the node is in another time namespace, so leases cannot be compared */
    CHATELAINE_WRONG_DEPLOYMENT,
    CHATELAINE_SYSTEM_ERROR, /* see the error */
};

#define CHATELAINE_ANY_DEPLOYMENT NULL
#define CHATELAINE_OWNER_OF_FOLDER ((uid_t)-1)

/* --- The format of the shared memory. Not for callers: another version may change it. ---
 *
 * The node makes two pieces of memory (memfd_create(2)) that nobody can shrink, and hands them to whoever connects. The
 * table is read-only for readers. The uses are written by both sides, so neither trusts them. */
enum {
    CHATELAINE_TABLE_FORMAT = 1,
    CHATELAINE_BUCKETS = 256,
    CHATELAINE_PARTITIONS_MAX = 256,
    CHATELAINE_WAYS = 8, /* entries in a set */
    CHATELAINE_HEADER_BYTES = 8192,
    CHATELAINE_ENTRY_WORDS = 8,
    CHATELAINE_RUN_BYTES = 16,
    CHATELAINE_DEPLOYMENT_BYTES = 64,
    CHATELAINE_SECRET_MAX = 256,
};
#define CHATELAINE_TABLE_MAGIC UINT64_C(0x6261745f74616863) /* "chat_tab" */
#define CHATELAINE_USES_MAGIC UINT64_C(0x6573755f74616863)  /* "chat_use" */

struct chatelaine_table_header {
    uint64_t magic;
    uint32_t format, set_count;                   /* of sets: a power of two */
    uint8_t run[CHATELAINE_RUN_BYTES];            /* random; the uses have the same */
    uint64_t hash_key[2];                         /* random; of the secrets' hashes */
    uint64_t time_namespace[2];                   /* device and inode of /proc/self/ns/time; 0 if the kernel has none */
    uint32_t partitions;                          /* a power of two */
    _Atomic uint32_t policy;                      /* chatelaine_table_policy() */
    char deployment[CHATELAINE_DEPLOYMENT_BYTES]; /* NUL-terminated */
    /* By partition: until when its entries may be used, by CLOCK_BOOTTIME. */
    _Atomic uint64_t lease_until_ns[CHATELAINE_PARTITIONS_MAX];
    /* By bucket: an entry with another epoch is none. A bucket is in the partition of its lowest bits. */
    _Atomic uint32_t epoch[CHATELAINE_BUCKETS];
};

/* An entry, as words: each can be read while it is written, and what is torn is noticed by the sequence number.
 *   0  sequence number (odd while it is written) | slot's generation << 32
 *   1, 2  the secret's hash
 *   3  epoch | scopes << 32 | bucket << 48 | is_device << 56 | is_live << 57
 *   4, 5  account's ULID   6, 7  principal's ULID; both big-endian */
struct chatelaine_entry {
    _Atomic uint64_t words[CHATELAINE_ENTRY_WORDS];
};

struct chatelaine_set {
    _Atomic uint64_t hints[CHATELAINE_WAYS]; /* the first word of each entry's hash; 0: there is none */
    struct chatelaine_entry entries[CHATELAINE_WAYS];
};

/* For readers compiled with an earlier check.h, which compare it. Others look at the table's header alone. */
struct chatelaine_uses_header {
    uint64_t magic;
    uint32_t format, unused;
    uint8_t run[CHATELAINE_RUN_BYTES];
};

/* By slot (set * CHATELAINE_WAYS + way): uses since the node last looked | the slot's generation << 32. */
typedef _Atomic uint64_t chatelaine_uses;

/* What the node sends to whoever connects, with two descriptors: table, uses. */
struct chatelaine_greeting {
    uint64_t magic;
    uint32_t format, unused;
};

struct chatelaine_table {
    /* Read-only for callers. */
    enum chatelaine_trouble trouble;
    int error; /* errno, if the trouble has one */

    /* Private. */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    const char *deployment;
    uid_t owner;
    int socket;                                   /* -1: none. Open while there is a table: it ends with the node */
    const struct chatelaine_table_header *header; /* NULL: there is no table */
    const struct chatelaine_set *sets;
    struct chatelaine_uses_header *uses_header;
    chatelaine_uses *uses;
    size_t table_bytes, uses_bytes;
    uint32_t set_mask, partition_mask;
    uint64_t hash_key[2];
};

/* --- SipHash-2-4 with 128 bits (Aumasson, Bernstein: SipHash, 2012, and its reference implementation) --- */

static inline uint64_t chatelaine_rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static inline uint64_t chatelaine_load_le(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0;

    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static inline void chatelaine_sip_rounds(uint64_t v[4], int count)
{
    for (int i = 0; i < count; i++) {
        v[0] += v[1];
        v[1] = chatelaine_rotate(v[1], 13) ^ v[0];
        v[0] = chatelaine_rotate(v[0], 32);
        v[2] += v[3];
        v[3] = chatelaine_rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = chatelaine_rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = chatelaine_rotate(v[1], 17) ^ v[2];
        v[2] = chatelaine_rotate(v[2], 32);
    }
}

static inline uint64_t chatelaine_sip_word(uint64_t v[4], uint8_t tweak, int rounds, uint64_t *lane)
{
    *lane ^= tweak;
    chatelaine_sip_rounds(v, rounds);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static inline void chatelaine_hash(const uint64_t key[2], const char *secret, size_t length, uint64_t ret_hash[2])
{
    const uint8_t *bytes = (const uint8_t *)secret;
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    uint64_t word;
    size_t at = 0;

    for (; at + 8 <= length; at += 8) {
        word = chatelaine_load_le(bytes + at, 8);
        v[3] ^= word;
        chatelaine_sip_rounds(v, 2);
        v[0] ^= word;
    }
    word = chatelaine_load_le(bytes + at, length - at) | (uint64_t)length << 56;
    v[3] ^= word;
    chatelaine_sip_rounds(v, 2);
    v[0] ^= word;
    ret_hash[0] = chatelaine_sip_word(v, 0xee, 4, &v[2]);
    ret_hash[1] = chatelaine_sip_word(v, 0xdd, 4, &v[1]);
}

/* --- Asking --- */

/* Where a hash may be: in the set of its first or of its second word. */
static inline uint32_t chatelaine_set_of(const uint64_t hash[2], int which, uint32_t set_mask)
{
    return (uint32_t)(hash[which] >> 32) & set_mask;
}

static inline uint64_t chatelaine_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Copies an entry; false: it is being written, or is not this hash's. */
static inline bool chatelaine_copy_entry(const struct chatelaine_entry *entry, const uint64_t hash[2],
                                         uint64_t ret_words[CHATELAINE_ENTRY_WORDS])
{
    ret_words[0] = atomic_load_explicit(&entry->words[0], memory_order_acquire);
    for (int i = 1; i < CHATELAINE_ENTRY_WORDS; i++)
        ret_words[i] = atomic_load_explicit(&entry->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return (ret_words[0] & 1) == 0 && atomic_load_explicit(&entry->words[0], memory_order_relaxed) == ret_words[0] &&
           ret_words[1] == hash[0] && ret_words[2] == hash[1];
}

static inline bool chatelaine_find(const struct chatelaine_table *table, const uint64_t hash[2], uint32_t *ret_slot,
                                   uint64_t ret_words[CHATELAINE_ENTRY_WORDS])
{
    __builtin_prefetch(&table->sets[chatelaine_set_of(hash, 1, table->set_mask)].hints);
    for (int which = 0; which < 2; which++) {
        uint32_t number = chatelaine_set_of(hash, which, table->set_mask);
        const struct chatelaine_set *set = &table->sets[number];

        for (uint32_t way = 0; way < CHATELAINE_WAYS; way++) {
            if (atomic_load_explicit(&set->hints[way], memory_order_relaxed) != hash[0])
                continue;
            *ret_slot = number * CHATELAINE_WAYS + way;
            __builtin_prefetch(&table->uses[*ret_slot], 1 /* to write */);
            if (chatelaine_copy_entry(&set->entries[way], hash, ret_words))
                return true;
        }
    }
    return false;
}

/* Counts one use, of that key only: if the slot has got another one, the count would be that one's. */
static inline bool chatelaine_count_use(chatelaine_uses *uses, uint32_t generation)
{
    uint64_t seen = atomic_load_explicit(uses, memory_order_relaxed);

    while ((uint32_t)(seen >> 32) == generation && (uint32_t)seen != UINT32_MAX)
        if (atomic_compare_exchange_weak_explicit(uses, &seen, seen + 1, memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

static inline void chatelaine_print_id(const char *prefix, uint64_t high, uint64_t low, char ret_text[32])
{
    static const char DIGITS[] = "0123456789abcdefghjkmnpqrstvwxyz";
    size_t at = strlen(prefix);

    memcpy(ret_text, prefix, at);
    for (int digit = 25; digit >= 0; digit--) { /* 26 digits of five bits, the first of three */
        unsigned shift = (unsigned)digit * 5;
        uint64_t bits = shift >= 64 ? high >> (shift - 64) : low >> shift;

        if (shift < 64 && shift > 59)
            bits |= high << (64 - shift);
        ret_text[at++] = DIGITS[bits & 31];
    }
    ret_text[at] = '\0';
}

static inline void chatelaine_read_entry(const uint64_t words[CHATELAINE_ENTRY_WORDS],
                                         struct chatelaine_principal *ret_who)
{
    ret_who->scopes = (uint32_t)(words[3] >> 32) & 0xffff;
    ret_who->is_device = words[3] >> 56 & 1;
    ret_who->is_live = words[3] >> 57 & 1;
    chatelaine_print_id("acct_", words[4], words[5], ret_who->account);
    chatelaine_print_id(ret_who->is_device ? "dev_" : "key_", words[6], words[7], ret_who->principal);
}

/* Rule 4 over processes. The lease is valid now, after the request came, and the entry is still there after the lease
 * was seen. An entry that was read only before that may be of a key that was revoked while the node had no lease:
 * whoever renews a lease has removed such entries first. */
static inline bool chatelaine_is_valid(const struct chatelaine_table *table, uint32_t slot,
                                       const uint64_t words[CHATELAINE_ENTRY_WORDS])
{
    const struct chatelaine_table_header *header = table->header;
    const struct chatelaine_entry *entry = &table->sets[slot / CHATELAINE_WAYS].entries[slot % CHATELAINE_WAYS];
    uint32_t bucket = (uint32_t)(words[3] >> 48) & (CHATELAINE_BUCKETS - 1);
    uint64_t until_ns =
        atomic_load_explicit(&header->lease_until_ns[bucket & table->partition_mask], memory_order_acquire);

    return chatelaine_now_ns() < until_ns && atomic_load_explicit(&entry->words[0], memory_order_acquire) == words[0] &&
           atomic_load_explicit(&header->epoch[bucket], memory_order_acquire) == (uint32_t)words[3];
}

/* Whether the key is accepted and has those scopes; then this was one use of it. False: ask the node over HTTP. Call it
 * after the request has come. The secret is not kept. */
static inline bool chatelaine_check(const struct chatelaine_table *table, const char *secret, size_t length,
                                    uint32_t scopes, struct chatelaine_principal *ret_who)
{
    uint64_t hash[2], words[CHATELAINE_ENTRY_WORDS];
    uint32_t slot;

    if (!table->header || length > CHATELAINE_SECRET_MAX)
        return false;
    chatelaine_hash(table->hash_key, secret, length, hash);
    if (!chatelaine_find(table, hash, &slot, words) || !chatelaine_is_valid(table, slot, words) ||
        (scopes & ~(uint32_t)(words[3] >> 32 & 0xffff)) != 0 ||
        !chatelaine_count_use(&table->uses[slot], (uint32_t)(words[0] >> 32)))
        return false;
    chatelaine_read_entry(words, ret_who);
    return true;
}

/* A number that changes with the node's route policy (--policy-file); 0: not known. For callers that were told scopes
 * elsewhere: if it is no longer what it was then, ask the node. */
static inline uint32_t chatelaine_table_policy(const struct chatelaine_table *table)
{
    return table->header ? atomic_load_explicit(&table->header->policy, memory_order_acquire) : 0;
}

/* --- The table: from where, and whose --- */

static inline void chatelaine_table_init(struct chatelaine_table *table, const char *path, const char *deployment,
                                         uid_t owner)
{
    memset(table, 0, sizeof *table);
    table->socket = -1;
    table->deployment = deployment;
    table->owner = owner;
    table->trouble = CHATELAINE_NOT_ASKED_YET;
    if (strlen(path) < sizeof table->path)
        memcpy(table->path, path, strlen(path) + 1);
}

static inline bool chatelaine_has_trouble(struct chatelaine_table *table, enum chatelaine_trouble trouble, int error)
{
    table->trouble = trouble;
    table->error = error;
    return false;
}

/* Forgets the table. Also ends the use of one; call chatelaine_table_init() to begin again. */
static inline void chatelaine_table_finish(struct chatelaine_table *table)
{
    if (table->header)
        munmap((void *)(uintptr_t)table->header, table->table_bytes);
    if (table->uses_header)
        munmap(table->uses_header, table->uses_bytes);
    if (table->socket >= 0)
        close(table->socket);
    table->header = NULL;
    table->uses_header = NULL;
    table->socket = -1;
}

static inline bool chatelaine_is_owner(const struct chatelaine_table *table, int connection)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    char folder[sizeof table->path];
    struct stat status;

    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return false;
    if (table->owner != CHATELAINE_OWNER_OF_FOLDER)
        return peer.uid == table->owner;
    memcpy(folder, table->path, sizeof folder);
    return stat(dirname(folder), &status) == 0 && peer.uid == status.st_uid;
}

static inline bool chatelaine_connect(struct chatelaine_table *table)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (table->path[0] == '\0') /* it would be a name that anybody may listen at */
        return chatelaine_has_trouble(table, CHATELAINE_UNREACHABLE, ENAMETOOLONG);
    memcpy(address.sun_path, table->path, sizeof address.sun_path);
    table->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (table->socket < 0)
        return chatelaine_has_trouble(table, CHATELAINE_SYSTEM_ERROR, errno);
    if (connect(table->socket, (const struct sockaddr *)&address, sizeof address) != 0)
        return chatelaine_has_trouble(table, CHATELAINE_UNREACHABLE, errno);
    if (!chatelaine_is_owner(table, table->socket))
        return chatelaine_has_trouble(table, CHATELAINE_WRONG_OWNER, 0);
    return true;
}

/* Receives the greeting and both descriptors. Closes what else came. */
static inline bool chatelaine_receive(struct chatelaine_table *table, int ret_fds[2])
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct chatelaine_greeting greeting = {0, 0, 0};
    struct iovec part = {&greeting, sizeof greeting};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg(table->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    int count = 0;

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return chatelaine_has_trouble(table, CHATELAINE_WAITING, 0);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(ret_fds, CMSG_DATA(header), (size_t)count * sizeof(int));
    }
    if (length == sizeof greeting && count == 2 && (message.msg_flags & MSG_CTRUNC) == 0 &&
        greeting.magic == CHATELAINE_TABLE_MAGIC && greeting.format == CHATELAINE_TABLE_FORMAT)
        return true;
    while (count > 0)
        close(ret_fds[--count]);
    if (length == 0) /* a node that ends */
        return chatelaine_has_trouble(table, CHATELAINE_UNREACHABLE, ECONNRESET);
    return chatelaine_has_trouble(table, length < 0 ? CHATELAINE_SYSTEM_ERROR : CHATELAINE_WRONG_FORMAT,
                                  length < 0 ? errno : 0);
}

/* Maps memory that cannot shrink, and is at least that large. */
static inline void *chatelaine_map(int fd, size_t least, int protection, size_t *ret_bytes)
{
    struct stat status;
    void *memory;

    if ((fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0 || fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &status) != 0 ||
        status.st_size < (off_t)least)
        return NULL;
    *ret_bytes = (size_t)status.st_size;
    memory = mmap(NULL, *ret_bytes, protection, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static inline bool chatelaine_is_power(uint32_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

/* The numbers of sets and of partitions are read once: those that were examined are those that are used. What the uses
 * say of themselves does not count, because every reader can write there. */
static inline bool chatelaine_is_sound(struct chatelaine_table *table, const struct chatelaine_table_header *header)
{
    uint32_t set_count = *(const volatile uint32_t *)&header->set_count;
    uint32_t partitions = *(const volatile uint32_t *)&header->partitions;
    size_t slots = (size_t)set_count * CHATELAINE_WAYS;

    table->set_mask = set_count - 1;
    table->partition_mask = partitions - 1;
    return header->magic == CHATELAINE_TABLE_MAGIC && header->format == CHATELAINE_TABLE_FORMAT &&
           chatelaine_is_power(set_count) && chatelaine_is_power(partitions) &&
           partitions <= CHATELAINE_PARTITIONS_MAX &&
           memchr(header->deployment, '\0', sizeof header->deployment) != NULL &&
           table->table_bytes >= CHATELAINE_HEADER_BYTES + set_count * sizeof(struct chatelaine_set) &&
           table->uses_bytes >= CHATELAINE_HEADER_BYTES + slots * sizeof(chatelaine_uses);
}

static inline bool chatelaine_has_same_clock(const struct chatelaine_table_header *header)
{
    struct stat status = {0};

    if (stat("/proc/self/ns/time", &status) != 0)
        status.st_dev = status.st_ino = 0;
    return header->time_namespace[0] == (uint64_t)status.st_dev && header->time_namespace[1] == (uint64_t)status.st_ino;
}

static inline bool chatelaine_accept_table(struct chatelaine_table *table, const int fds[2])
{
    void *memory = chatelaine_map(fds[0], CHATELAINE_HEADER_BYTES, PROT_READ, &table->table_bytes);
    const struct chatelaine_table_header *header = (const struct chatelaine_table_header *)memory;

    table->header = header;
    table->uses_header = (struct chatelaine_uses_header *)chatelaine_map(fds[1], CHATELAINE_HEADER_BYTES,
                                                                         PROT_READ | PROT_WRITE, &table->uses_bytes);
    close(fds[0]);
    close(fds[1]);
    if (!header || !table->uses_header || !chatelaine_is_sound(table, header))
        return chatelaine_has_trouble(table, CHATELAINE_WRONG_FORMAT, 0);
    if (!chatelaine_has_same_clock(header))
        return chatelaine_has_trouble(table, CHATELAINE_WRONG_CLOCK, 0);
    if (table->deployment && strncmp(table->deployment, header->deployment, sizeof header->deployment) != 0)
        return chatelaine_has_trouble(table, CHATELAINE_WRONG_DEPLOYMENT, 0);
    table->sets = (const struct chatelaine_set *)((const char *)memory + CHATELAINE_HEADER_BYTES);
    table->uses = (chatelaine_uses *)((char *)table->uses_header + CHATELAINE_HEADER_BYTES);
    memcpy(table->hash_key, header->hash_key, sizeof table->hash_key);
    table->trouble = CHATELAINE_FINE;
    table->error = 0;
    return true;
}

/* A byte would hide the end of the connection, and a node sends none. */
static inline bool chatelaine_is_over(const struct chatelaine_table *table)
{
    char byte;
    ssize_t length = recv(table->socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

    return length >= 0 || (errno != EAGAIN && errno != EINTR);
}

/* Gets the table if there is none yet, or if the node has ended. Never blocks. Call it every second, or more often; the
 * first calls connect and then receive. Returns whether there is a table; otherwise table->trouble says why not. */
static inline bool chatelaine_table_refresh(struct chatelaine_table *table)
{
    int fds[2];

    if (table->header && !chatelaine_is_over(table))
        return true;
    if (table->header)
        chatelaine_table_finish(table);
    if ((table->socket >= 0 || chatelaine_connect(table)) && chatelaine_receive(table, fds) &&
        chatelaine_accept_table(table, fds))
        return true;
    if (table->trouble != CHATELAINE_WAITING)
        chatelaine_table_finish(table);
    return false;
}

static inline const char *chatelaine_trouble_text(enum chatelaine_trouble trouble)
{
    switch (trouble) {
    case CHATELAINE_FINE:
        return "none";
    case CHATELAINE_NOT_ASKED_YET:
        return "nobody asked for the table yet";
    case CHATELAINE_UNREACHABLE:
        return "the node's socket cannot be reached";
    case CHATELAINE_WAITING:
        return "the node has not sent its table yet";
    case CHATELAINE_WRONG_OWNER:
        return "the socket is served by a user who does not own its folder, or not by the one expected";
    case CHATELAINE_WRONG_FORMAT:
        return "what was sent is not a table of this version";
    case CHATELAINE_WRONG_CLOCK:
        return "the node runs in another time namespace";
    case CHATELAINE_WRONG_DEPLOYMENT:
        return "the table belongs to another deployment";
    case CHATELAINE_SYSTEM_ERROR:
        break;
    }
    return "system error";
}
#endif

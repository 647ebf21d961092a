/* Serves a table of keys (include/chatelaine/check.h) without a node, or something that is none:
 *   table_server SOCKET MODE [SECRET SCOPES KIND]…
 * SCOPES: bits, as a number. KIND: letters, d for a device key, l for live. MODE: "good", or one of MODES below. Prints
 * "ready". Reads commands, one a line, and answers each with a line:
 *   forget N   the N-th key is not in the table any more
 *   lease MS   all leases end that long from now
 *   epoch      all entries are of an earlier one
 *   uses N     how often the N-th key was used
 *   clients    how many connections are open
 * Ends with its input. */
#include "chatelaine/check.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SETS = 16, SLOTS = SETS * CHATELAINE_WAYS, KEYS_MAX = 16, CLIENTS_MAX = 64, LEASE_MS = 3600000 };
enum { TABLE_BYTES = CHATELAINE_HEADER_BYTES + SETS * sizeof(struct chatelaine_set) };
enum { USES_BYTES = CHATELAINE_HEADER_BYTES + SLOTS * sizeof(chatelaine_uses) };

static struct chatelaine_greeting greeting = {CHATELAINE_TABLE_MAGIC, CHATELAINE_TABLE_FORMAT, 0};
static struct chatelaine_table_header *header;
static struct chatelaine_uses_header *uses_header;
static int fds[2];
static uint32_t slot_of[KEYS_MAX];
static int clients[CLIENTS_MAX], client_count;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* --- a good table --- */

static void *make_memory(const char *name, size_t bytes, int seals, int *ret_fd)
{
    void *memory;

    *ret_fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*ret_fd < 0 || ftruncate(*ret_fd, (off_t)bytes) != 0 || fcntl(*ret_fd, F_ADD_SEALS, seals) != 0)
        die("memfd");
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
    if (memory == MAP_FAILED)
        die("mmap");
    return memory;
}

static void set_lease(uint64_t ms)
{
    for (int i = 0; i < CHATELAINE_PARTITIONS_MAX; i++)
        atomic_store(&header->lease_until_ns[i], chatelaine_now_ns() + ms * 1000000);
}

static struct chatelaine_set *sets(void)
{
    return (struct chatelaine_set *)((char *)header + CHATELAINE_HEADER_BYTES);
}

static chatelaine_uses *uses(void)
{
    return (chatelaine_uses *)((char *)uses_header + CHATELAINE_HEADER_BYTES);
}

static void make_table(int seals)
{
    struct stat clock = {0};

    header = make_memory("table", TABLE_BYTES, seals, &fds[0]);
    uses_header = make_memory("uses", USES_BYTES, seals, &fds[1]);
    if (stat("/proc/self/ns/time", &clock) == 0) {
        header->time_namespace[0] = clock.st_dev;
        header->time_namespace[1] = clock.st_ino;
    }
    header->magic = CHATELAINE_TABLE_MAGIC;
    uses_header->magic = CHATELAINE_USES_MAGIC;
    header->format = uses_header->format = CHATELAINE_TABLE_FORMAT;
    header->set_count = SETS;
    header->partitions = 1;
    header->hash_key[0] = 0x0123456789abcdef;
    header->hash_key[1] = 0xfedcba9876543210;
    memcpy(header->deployment, "test", 5);
    for (int i = 0; i < CHATELAINE_BUCKETS; i++)
        atomic_store(&header->epoch[i], 1);
    set_lease(LEASE_MS);
}

static void add_key(int number, const char *secret, uint64_t scopes, const char *kind)
{
    uint64_t hash[2];
    struct chatelaine_set *set;
    struct chatelaine_entry *entry;
    uint32_t set_number;

    chatelaine_hash(header->hash_key, secret, strlen(secret), hash);
    set_number = chatelaine_set_of(hash, number & 1, SETS - 1);
    set = &sets()[set_number];
    for (int way = 0; way < CHATELAINE_WAYS; way++) {
        if (set->hints[way] != 0)
            continue;
        entry = &set->entries[way];
        entry->words[1] = hash[0];
        entry->words[2] = hash[1];
        entry->words[3] = 1 | scopes << 32 | (uint64_t)(strchr(kind, 'd') != NULL) << 56 |
                          (uint64_t)(strchr(kind, 'l') != NULL) << 57;
        entry->words[4] = entry->words[6] = UINT64_C(0x0192000000000000);
        entry->words[5] = 1;
        entry->words[7] = (uint64_t)number + 2;
        set->hints[way] = hash[0];
        slot_of[number] = set_number * CHATELAINE_WAYS + (uint32_t)way;
        return;
    }
    die("no room");
}

/* --- what is none --- */

static void unsealed(void)
{
    make_table(0);
}
static void small_table(void)
{
    close(fds[0]);
    make_memory("small", CHATELAINE_HEADER_BYTES - 1, F_SEAL_SHRINK, &fds[0]);
}
static void small_uses(void)
{
    close(fds[1]);
    make_memory("small", 1, F_SEAL_SHRINK, &fds[1]);
}
static void empty(void)
{
    close(fds[0]);
    make_memory("empty", TABLE_BYTES, F_SEAL_SHRINK, &fds[0]);
}
static void pipes(void)
{
    if (pipe(fds) != 0)
        die("pipe");
}
static void swapped(void)
{
    int table = fds[0];

    fds[0] = fds[1];
    fds[1] = table;
}
static void unwritable_uses(void)
{
    munmap(uses_header, USES_BYTES);
    if (fcntl(fds[1], F_ADD_SEALS, F_SEAL_WRITE) != 0)
        die("seal");
}
static void more_sets(void)
{
    header->set_count = SETS * 2;
}
static void most_sets(void)
{
    header->set_count = 1U << 31;
}
static void odd_sets(void)
{
    header->set_count = SETS - 1;
}
static void no_sets(void)
{
    header->set_count = 0;
}
static void more_partitions(void)
{
    header->partitions = CHATELAINE_PARTITIONS_MAX * 2;
}
static void no_partitions(void)
{
    header->partitions = 0;
}
/* By another reader, which can write there. */
static void spoiled_uses(void)
{
    memset(uses_header, 0xff, sizeof *uses_header);
}
static void other_format(void)
{
    header->format = CHATELAINE_TABLE_FORMAT + 1;
}
static void other_greeting(void)
{
    greeting.format++;
}
static void other_magic(void)
{
    greeting.magic++;
}
static void other_clock(void)
{
    header->time_namespace[1]++;
}
static void other_deployment(void)
{
    memcpy(header->deployment, "other", 6);
}
static void endless_deployment(void)
{
    memset(header->deployment, 'x', sizeof header->deployment);
}
static void *flip(void *arg)
{
    volatile uint32_t *sets_said = &header->set_count;

    (void)arg;
    for (;;) {
        *sets_said = 1U << 30;
        *sets_said = SETS;
    }
    return NULL;
}
static void flipping_sets(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, flip, NULL) != 0)
        die("pthread_create");
}
static void nothing(void)
{
}

static const char TEXT_ANSWER[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
/* What is changed of a good table, what is sent, and with how many descriptors. */
static const struct {
    const char *name;
    void (*change)(void);
    enum { SEND_GREETING, SEND_TEXT, SEND_HALF, SEND_NOTHING, SEND_END } send;
    int fd_count;
} MODES[] = {
    {"good", spoiled_uses, SEND_GREETING, 2},
    {"text", nothing, SEND_TEXT, 0},
    {"text with descriptors", nothing, SEND_TEXT, 2},
    {"half a greeting", nothing, SEND_HALF, 2},
    {"silence", nothing, SEND_NOTHING, 0},
    {"closing", nothing, SEND_END, 0},
    {"no descriptor", nothing, SEND_GREETING, 0},
    {"one descriptor", nothing, SEND_GREETING, 1},
    {"pipes", pipes, SEND_GREETING, 2},
    {"swapped", swapped, SEND_GREETING, 2},
    {"unsealed", unsealed, SEND_GREETING, 2},
    {"small table", small_table, SEND_GREETING, 2},
    {"small uses", small_uses, SEND_GREETING, 2},
    {"unwritable uses", unwritable_uses, SEND_GREETING, 2},
    {"empty", empty, SEND_GREETING, 2},
    {"more sets", more_sets, SEND_GREETING, 2},
    {"most sets", most_sets, SEND_GREETING, 2},
    {"odd sets", odd_sets, SEND_GREETING, 2},
    {"no sets", no_sets, SEND_GREETING, 2},
    {"more partitions", more_partitions, SEND_GREETING, 2},
    {"no partitions", no_partitions, SEND_GREETING, 2},
    {"other format", other_format, SEND_GREETING, 2},
    {"other greeting", other_greeting, SEND_GREETING, 2},
    {"other magic", other_magic, SEND_GREETING, 2},
    {"other clock", other_clock, SEND_GREETING, 2},
    {"other deployment", other_deployment, SEND_GREETING, 2},
    {"endless deployment", endless_deployment, SEND_GREETING, 2},
    {"five descriptors", nothing, SEND_GREETING, 5},
    {"flipping sets", flipping_sets, SEND_GREETING, 2},
};
enum { MODE_COUNT = sizeof MODES / sizeof MODES[0] };
static size_t mode;

static void choose_mode(const char *name)
{
    for (mode = 0; mode < MODE_COUNT; mode++)
        if (strcmp(MODES[mode].name, name) == 0)
            return;
    for (size_t i = 0; i < MODE_COUNT; i++)
        puts(MODES[i].name);
    exit(2);
}

/* --- serving --- */

static void send_part(int client, const void *bytes, size_t length)
{
    enum { MOST = 5 };
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(MOST * sizeof(int))];
    } control = {.bytes = {0}};
    int sent[MOST] = {fds[0], fds[1], fds[0], fds[1], fds[0]}, count = MODES[mode].fd_count;
    struct iovec part = {(void *)(uintptr_t)bytes, length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct cmsghdr *first;

    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
        first = CMSG_FIRSTHDR(&message);
        first->cmsg_level = SOL_SOCKET;
        first->cmsg_type = SCM_RIGHTS;
        first->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
        memcpy(CMSG_DATA(first), sent, (size_t)count * sizeof(int));
    }
    (void)sendmsg(client, &message, MSG_NOSIGNAL); /* who has left meanwhile gets nothing */
}

static void serve(int listener)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (client < 0)
        die("accept");
    if (MODES[mode].send == SEND_GREETING)
        send_part(client, &greeting, sizeof greeting);
    else if (MODES[mode].send == SEND_TEXT)
        send_part(client, TEXT_ANSWER, sizeof TEXT_ANSWER - 1);
    else if (MODES[mode].send == SEND_HALF)
        send_part(client, &greeting, sizeof greeting / 2);
    if (MODES[mode].send == SEND_END || client_count == CLIENTS_MAX)
        close(client);
    else
        clients[client_count++] = client;
}

static void forget_clients_that_left(void)
{
    char byte;

    for (int i = 0; i < client_count; i++)
        if (recv(clients[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 || errno != EAGAIN) {
            close(clients[i]);
            clients[i--] = clients[--client_count];
        }
}

static void obey(char *word)
{
    char *end = word + strcspn(word, " \n");
    long number = *end == ' ' ? strtol(end + 1, NULL, 10) : 0;
    uint32_t slot = slot_of[number < KEYS_MAX ? number : 0];

    *end = '\0';
    if (strcmp(word, "forget") == 0)
        atomic_fetch_add(&sets()[slot / CHATELAINE_WAYS].entries[slot % CHATELAINE_WAYS].words[0], 1);
    else if (strcmp(word, "lease") == 0)
        set_lease((uint64_t)number);
    else if (strcmp(word, "epoch") == 0)
        for (int i = 0; i < CHATELAINE_BUCKETS; i++)
            atomic_fetch_add(&header->epoch[i], 1);
    else if (strcmp(word, "policy") == 0)
        atomic_store(&header->policy, (uint32_t)number);
    else if (strcmp(word, "clients") == 0)
        forget_clients_that_left();
    else if (strcmp(word, "uses") != 0)
        die(word);
    if (strcmp(word, "clients") == 0)
        printf("%d\n", client_count);
    else
        printf("%u\n", (uint32_t)atomic_load(&uses()[slot]));
}

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd polled[] = {{listener, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    char line[64];

    if (argc < 3 || argc % 3 != 0 || argc / 3 > KEYS_MAX || strlen(argv[1]) >= sizeof address.sun_path)
        return 2;
    choose_mode(argv[2]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    make_table(F_SEAL_SHRINK | F_SEAL_GROW);
    for (int i = 3; i < argc; i += 3)
        add_key(i / 3 - 1, argv[i], strtoull(argv[i + 1], NULL, 0), argv[i + 2]);
    MODES[mode].change();
    memcpy(address.sun_path, argv[1], strlen(argv[1]));
    unlink(argv[1]);
    if (bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 || listen(listener, CLIENTS_MAX) != 0)
        die("bind");
    puts("ready");
    while (poll(polled, 2, -1) > 0) {
        if (polled[0].revents)
            serve(listener);
        if (polled[1].revents && !fgets(line, sizeof line, stdin))
            break;
        if (polled[1].revents)
            obey(line);
    }
    return 0;
}

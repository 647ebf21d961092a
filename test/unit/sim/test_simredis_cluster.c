/* simredis as a member of a cluster, held to Redis: two servers of each, with the same names, addresses and slots, are
 * sent the same, and answer the same. */
#include "base/list.h"
#include "base/mem.h"
#include "deadline.h"
#include "leak_guard.h"
#include "redis_cluster.h"
#include "simredis_cluster.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MEMBERS = 2, CLIENTS_EACH = 2, CLIENTS = MEMBERS * CLIENTS_EACH, TICK_US = 100000, TICKS_TO_BE_UP = 30 };

/* Of the slots of {0} and {1} the second is the owner, of those of {2} and {3} the first. */

struct told {
    struct list node;
    unsigned to;
    size_t length;
    char bytes[];
};

struct client {
    struct simredis_client *simulated;
    int real;
    struct buf replies[2]; /* of simredis, of Redis */
};

static struct {
    struct cluster_servers real;
    struct simredis *simulated[MEMBERS];
    struct list told;
    struct client clients[CLIENTS];
    char ids[MEMBERS][64];
    uint64_t now_us, random, pings;
} w;

/* simredis' surroundings */

static uint64_t unix_us(void *context)
{
    (void)context;
    return w.now_us;
}

static uint64_t random_number(void *context)
{
    (void)context;
    return w.random++;
}

static void on_send(void *replies, const char *bytes, size_t length)
{
    buf_append(replies, bytes, length);
}

static void on_close(void *client)
{
    (void)client;
    cr_assert_fail("nobody is closed here");
}

static unsigned member_at(uint16_t port)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        if (w.real.servers[i].port == port)
            return i;
    return MEMBERS;
}

static void tell(void *context, const char *host, uint16_t port, const char *bytes, size_t length)
{
    struct told *told = mem_alloc(sizeof *told + length);

    (void)context;
    cr_expect_str_eq(host, "127.0.0.1");
    *told = (struct told){.to = member_at(port), .length = length};
    memcpy(told->bytes, bytes, length);
    list_append(&w.told, &told->node);
}

static bool ask(void *context, const char *host, uint16_t port, const char *bytes, size_t length,
                struct buf *ret_replies)
{
    const unsigned to = member_at(port);
    struct simredis_client *client;

    (void)context;
    (void)host;
    if (to == MEMBERS)
        return false;
    client = simredis_connect(w.simulated[to], ret_replies);
    simredis_receive(client, bytes, length);
    simredis_disconnect(client);
    return true;
}

static void tick(void)
{
    struct list *node;

    w.now_us += TICK_US;
    for (unsigned i = 0; i < MEMBERS; i++)
        simredis_run(w.simulated[i]);
    while ((node = list_take(&w.told))) {
        struct told *told = LIST_ENTRY(node, struct told, node);

        simredis_hear(w.simulated[told->to], told->bytes, told->length);
        free(told);
    }
}

static void simulate(unsigned member)
{
    static const struct simredis_host HOST = {
        .unix_us = unix_us, .random = random_number, .send = on_send, .close = on_close};
    static const struct simredis_bus BUS = {tell, ask};
    char nodes[8192];

    redis_server_ask(&w.real.servers[member], nodes, sizeof nodes, "CLUSTER", "NODES", NULL);
    w.simulated[member] = simredis_new(&HOST);
    cr_assert(simredis_join(w.simulated[member], &BUS, nodes), "%s", nodes);
    cr_assert(simredis_configure(w.simulated[member], "cluster-node-timeout", "30000") &&
              simredis_configure(w.simulated[member], "cluster-require-full-coverage", "no"));
    redis_server_ask(&w.real.servers[member], w.ids[member], sizeof w.ids[member], "CLUSTER", "MYID", NULL);
}

static void connect_client(unsigned number)
{
    struct client *client = &w.clients[number];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    address.sin_port = htons(w.real.servers[number / CLIENTS_EACH].port);
    client->real = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(client->real >= 0 && connect(client->real, (struct sockaddr *)&address, sizeof address) == 0);
    for (size_t side = 0; side < 2; side++)
        buf_init(&client->replies[side], SIZE_MAX / 2);
    client->simulated = simredis_connect(w.simulated[number / CLIENTS_EACH], &client->replies[0]);
}

static void begin(void)
{
    cluster_servers_start(&w.real, MEMBERS, false);
    w.now_us = UINT64_C(1795000000000000);
    list_init(&w.told);
    for (unsigned i = 0; i < MEMBERS; i++)
        simulate(i);
    for (unsigned i = 0; i < CLIENTS; i++)
        connect_client(i);
    for (unsigned i = 0; i < TICKS_TO_BE_UP; i++)
        tick();
}

static void end(void)
{
    struct list *node;

    for (unsigned i = 0; i < CLIENTS; i++) {
        close(w.clients[i].real);
        for (size_t side = 0; side < 2; side++)
            buf_finish(&w.clients[i].replies[side]);
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        simredis_free(w.simulated[i]);
    while ((node = list_take(&w.told)))
        free(LIST_ENTRY(node, struct told, node));
    cluster_servers_stop(&w.real);
    leak_guard();
}

TestSuite(simredis_cluster, .init = begin, .fini = end, .timeout = 300);

/* Requests */

/* "ID0" and "PORT1" are those of a member; "''" is empty, "_" a blank. */
static void put_word(struct buf *out, struct text word)
{
    struct buf whole = BUF_FIXED(2048);

    if (text_starts_with(word, TEXT("ID")) && word.len == 3)
        buf_append_str(&whole, w.ids[word.ptr[2] - '0']);
    else if (text_starts_with(word, TEXT("PORT")))
        buf_append_u64(&whole, w.real.servers[word.ptr[4] - '0'].port);
    else if (!text_equal(word, TEXT("''")))
        for (size_t i = 0; i < word.len; i++)
            buf_append_char(&whole, word.ptr[i] == '_' ? ' ' : word.ptr[i]);
    buf_printf(out, "$%zu\r\n", whole.len);
    buf_append_text(out, buf_text(&whole));
    buf_append_str(out, "\r\n");
}

static void put_command(struct buf *out, struct text command)
{
    struct text rest = command, word;
    size_t count = 0;

    while (text_next(&rest, ' ', &word))
        count++;
    buf_printf(out, "*%zu\r\n", count);
    while (text_next(&command, ' ', &word))
        put_word(out, word);
}

static bool has_end(const struct buf *replies, struct text end)
{
    return replies->len >= end.len && text_equal(text_skip(buf_text(replies), replies->len - end.len), end);
}

static void send_real(struct client *client, const struct buf *request, struct text pong)
{
    char bytes[65536];
    ssize_t count;

    cr_assert(send(client->real, request->ptr, request->len, MSG_NOSIGNAL) == (ssize_t)request->len);
    while (!has_end(&client->replies[1], pong) && (count = recv(client->real, bytes, sizeof bytes, 0)) > 0)
        buf_append(&client->replies[1], bytes, (size_t)count);
    cr_assert(has_end(&client->replies[1], pong));
}

/* Commands with ";" between them, and a PING, whose answer comes last. */
static void send_to(struct client *client, const char *commands, bool to_real, bool to_simulated)
{
    struct text rest = text_of(commands), command;
    struct buf request = BUF_UP_TO(65536), pong = BUF_FIXED(64);
    char ping[32];

    snprintf(ping, sizeof ping, "PING pong-%llu", (unsigned long long)++w.pings);
    while (text_next(&rest, ';', &command))
        if (command.len > 0)
            put_command(&request, command);
    put_command(&request, text_of(ping));
    put_word(&pong, text_skip(text_of(ping), strlen("PING ")));
    if (to_real)
        send_real(client, &request, buf_text(&pong));
    if (to_simulated)
        simredis_receive(client->simulated, request.ptr, request.len);
    buf_finish(&request);
}

/* Replies */

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Where the number-th field of a line of CLUSTER NODES begins; NULL: it has none. */
static char *field_of(char *line, unsigned number)
{
    while (line && number-- > 0)
        line = strchr(line, ' ') ? strchr(line, ' ') + 1 : NULL;
    return line;
}

/* When it was pinged, and when it answered. */
static void cut_times(char *line)
{
    char *times = field_of(line, 4), *rest = field_of(line, 6);

    if (rest)
        memmove(times, rest, strlen(rest) + 1);
}

/* Of CLUSTER NODES each line without its times, in their order; of CLUSTER INFO what is not of messages; of others all,
 * without the last answer to PING. */
static const char *plain(const struct buf *replies, const char *commands)
{
    static char texts[2][16384], copy[16384];
    static unsigned turn;
    char *text = texts[turn++ % 2], *rest = copy, *line, *lines[64];
    size_t count = 0, used = 0;
    const bool is_nodes = strstr(commands, "CLUSTER NODES"), is_info = strstr(commands, "CLUSTER INFO");

    snprintf(copy, sizeof copy, "%.*s", TEXT_ARG(buf_text(replies)));
    while ((line = strsep(&rest, "\n")) && count < sizeof lines / sizeof *lines)
        if (!(is_nodes || is_info) ||
            (line[0] != '$' && strncmp(line, "cluster_stats", 13) != 0 && strncmp(line, "total_cluster", 13) != 0))
            lines[count++] = line;
    if (is_nodes)
        qsort(lines, count, sizeof *lines, compare_lines);
    for (size_t i = 0; i < count; i++) {
        if (is_nodes)
            cut_times(lines[i]);
        if (!strstr(lines[i], "pong-"))
            used += (size_t)snprintf(text + used, 16384 - used, "%s/", lines[i]);
    }
    return text;
}

static void forget(struct client *client)
{
    buf_clear(&client->replies[0]);
    buf_clear(&client->replies[1]);
}

static void expect(unsigned number, const char *commands)
{
    struct client *client = &w.clients[number];

    send_to(client, commands, true, true);
    const char *simulated = plain(&client->replies[0], commands), *real = plain(&client->replies[1], commands);
    cr_expect_str_eq(simulated, real, "%u: %s\n  simredis %s\n  Redis    %s", number, commands, simulated, real);
    forget(client);
    tick();
}

/* What the members tell each other takes Redis a while. */
static void await(unsigned number, const char *commands)
{
    struct client *client = &w.clients[number];
    struct deadline deadline = deadline_in(PATIENCE_MS);
    const char *simulated, *real;

    send_to(client, commands, false, true);
    do {
        buf_clear(&client->replies[1]);
        send_to(client, commands, true, false);
        simulated = plain(&client->replies[0], commands);
        real = plain(&client->replies[1], commands);
    } while (strcmp(simulated, real) != 0 && deadline_left_ms(deadline) > 0 && poll(NULL, 0, 20) == 0);
    cr_expect_str_eq(simulated, real, "%u: %s\n  simredis %s\n  Redis    %s", number, commands, simulated, real);
    forget(client);
    tick();
}

/* Each with the number of a client: 0 and 1 of the first member, 2 and 3 of the second. */
#define EACH(...)                                                 \
    do {                                                          \
        const struct {                                            \
            unsigned client;                                      \
            const char *commands;                                 \
        } steps[] = {__VA_ARGS__};                                \
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) \
            expect(steps[i].client, steps[i].commands);           \
    } while (0)

Test(simredis_cluster, a_command_runs_where_the_slot_of_its_keys_is)
{
    EACH({0, "SET {2}a 1"}, {0, "GET {2}a"}, {0, "SET {0}a 1"}, {2, "SET {0}a 1"}, {2, "GET {2}a"}, {0, "GET a"},
         {0, "MGET {2}a {2}b"}, {0, "MGET {2}a {3}b"}, {0, "MGET {0}a {0}b"}, {0, "DEL {2}a {0}a"},
         {2, "MSET {0}a 1 {0}b 2"}, {2, "MSET {0}a 1 {1}b 2"}, {0, "EXISTS {2}a {2}a"}, {0, "COPY {2}a {2}c"},
         {0, "RENAME {2}a {0}c"}, {0, "KEYS {2}a*"}, {0, "DBSIZE"}, {0, "SELECT 0"}, {0, "SELECT 1"},
         {0, "REPLICAOF NO ONE"}, {0, "WAIT 0 1"}, {0, "PING"}, {0, "GET"}, {0, "NOSUCH {0}a"});
}

Test(simredis_cluster, slots_are_counted_as_redis_counts_them)
{
    EACH({0, "CLUSTER KEYSLOT a"}, {0, "CLUSTER KEYSLOT {a}b"}, {0, "CLUSTER KEYSLOT {}b"}, {0, "CLUSTER KEYSLOT b{"},
         {0, "CLUSTER KEYSLOT {a"}, {0, "CLUSTER KEYSLOT a{b}c{d}"}, {0, "CLUSTER KEYSLOT {{a}b}"},
         {0, "CLUSTER KEYSLOT ''"}, {0, "CLUSTER KEYSLOT chatelaine:{255}:key:x"}, {0, "CLUSTER KEYSLOT"},
         {0, "CLUSTER MYID"}, {0, "CLUSTER NODES"}, {2, "CLUSTER NODES"}, {0, "CLUSTER INFO"}, {2, "CLUSTER INFO"},
         {0, "CLUSTER NOSUCH"}, {0, "ASKING;GET {2}a"});
}

Test(simredis_cluster, a_script_keeps_to_one_slot)
{
    EACH({0, "EVAL return_redis.call('SET',KEYS[1],'1') 1 {2}a"},
         {0, "EVAL return_redis.call('SET',KEYS[1],'1') 1 {0}a"},
         {0, "EVAL return_redis.call('SET',KEYS[1],'1') 2 {2}a {3}a"},
         {0, "EVAL return_redis.call('SET',ARGV[1],'1') 1 {2}a {2}b"},
         {0, "EVAL return_redis.call('SET',ARGV[1],'1') 1 {2}a {0}b"},
         {0, "EVAL return_redis.call('SET',ARGV[1],'1') 0 {2}a"},
         {0, "EVAL return_redis.call('SET',ARGV[1],'1') 0 {0}a"},
         {0, "EVAL return_redis.call('SET',ARGV[1],'1') 1 {2}a {3}b"},
         {0, "EVAL #!lua\nreturn_redis.call('SET',ARGV[1],'1') 1 {2}a {3}b"},
         {0, "EVAL #!lua\nredis.call('GET',ARGV[1])return_redis.call('GET',ARGV[2]) 0 {2}a {3}b"},
         {0, "EVAL #!lua_flags=allow-cross-slot-keys\nreturn_redis.call('SET',ARGV[1],'1') 1 {2}a {3}b"},
         {0, "EVAL return_redis.pcall('GET',ARGV[1]) 1 {2}a {0}b"},
         {0, "EVAL return_redis.call('SPUBLISH',ARGV[1],'x') 1 {2}a {2}b"},
         {0, "EVAL return_redis.call('SPUBLISH',ARGV[1],'x') 1 {2}a {0}b"},
         {0, "EVAL return_redis.call('PUBLISH',ARGV[1],'x') 1 {2}a {0}b"},
         {0, "EVAL #!lua\nreturn_redis.call('SPUBLISH',ARGV[1],'x') 1 {2}a {3}b"},
         {0, "EVALSHA 0000000000000000000000000000000000000000 1 {2}a"},
         {0, "EVALSHA 0000000000000000000000000000000000000000 1 {0}a"}, {0, "EVAL return_1 9 {0}a"});
}

Test(simredis_cluster, settings_of_slots_are_checked)
{
    EACH({0, "CLUSTER SETSLOT 16384 STABLE"}, {0, "CLUSTER SETSLOT x STABLE"}, {0, "CLUSTER SETSLOT 5649"},
         {0, "CLUSTER SETSLOT 5649 MIGRATING"}, {0, "CLUSTER SETSLOT 5649 WRONG ID1"},
         {0, "CLUSTER SETSLOT 13907 MIGRATING ID1"}, {0, "CLUSTER SETSLOT 5649 IMPORTING ID1"},
         {0, "CLUSTER SETSLOT 5649 MIGRATING nobody"}, {0, "CLUSTER SETSLOT 13907 IMPORTING nobody"},
         {0, "CLUSTER SETSLOT 5649 NODE nobody"}, {0, "SET {2}a 1"}, {0, "CLUSTER SETSLOT 5649 NODE ID1"},
         {0, "CLUSTER SETSLOT 5649 STABLE"}, {0, "CLUSTER COUNTKEYSINSLOT 5649"}, {0, "CLUSTER COUNTKEYSINSLOT 5650"},
         {0, "CLUSTER COUNTKEYSINSLOT 16384"}, {0, "CLUSTER COUNTKEYSINSLOT x"}, {0, "CLUSTER GETKEYSINSLOT 5649 9"},
         {0, "CLUSTER GETKEYSINSLOT 5649 0"}, {0, "CLUSTER GETKEYSINSLOT 5649 -1"},
         {0, "CLUSTER GETKEYSINSLOT 16384 1"}, {0, "CLUSTER NODES"});
}

static void open_slot(void)
{
    EACH({2, "CLUSTER SETSLOT 5649 IMPORTING ID0"}, {0, "CLUSTER SETSLOT 5649 MIGRATING ID1"});
}

Test(simredis_cluster, while_a_slot_moves_its_keys_are_where_they_are)
{
    EACH({0, "SET {2}a 1"}, {0, "SET {2}b 2"});
    open_slot();
    EACH({0, "CLUSTER NODES"}, {2, "CLUSTER NODES"}, {0, "GET {2}a"}, {0, "GET {2}no"}, {0, "SET {2}no 1"},
         {2, "GET {2}a"}, {2, "ASKING;GET {2}a"}, {0, "MIGRATE 127.0.0.1 PORT1 {2}a 0 5000"},
         {0, "MIGRATE 127.0.0.1 PORT1 {2}a 0 5000"}, {0, "GET {2}a"}, {0, "MGET {2}a {2}b"}, {0, "MGET {2}a {2}c"},
         {2, "GET {2}a"}, {2, "ASKING;GET {2}a"}, {2, "ASKING;PING;GET {2}a"}, {2, "ASKING;MGET {2}a {2}b"},
         {2, "ASKING;MGET {2}a {2}a"}, {2, "ASKING;SET {2}new 1;GET {2}new"},
         {0, "EVAL return_redis.call('GET',KEYS[1]) 1 {2}no"}, {0, "EVAL return_redis.call('GET',KEYS[1]) 1 {2}b"},
         {0, "EVAL return_redis.call('GET',ARGV[1]) 1 {2}b {2}a"},
         {0, "EVAL return_redis.call('SPUBLISH',ARGV[1],'x') 1 {2}b {2}no"},
         {2, "ASKING;EVAL return_redis.call('GET',ARGV[1]) 1 {2}a {2}a"}, {0, "SPUBLISH {2}c x"},
         {2, "SPUBLISH {2}c x"}, {0, "CLUSTER COUNTKEYSINSLOT 5649"}, {2, "CLUSTER COUNTKEYSINSLOT 5649"});
}

Test(simredis_cluster, migrate_carries_every_kind_with_its_time_to_live)
{
    EACH({0, "SET {2}s text"}, {0, "HSET {2}h a 1 b 2"}, {0, "RPUSH {2}l a b"}, {0, "SADD {2}i 3 1"},
         {0, "ZADD {2}z 1.5 a"}, {0, "XADD {2}x 5-1 a b"}, {0, "XADD {2}y 5-1 a b"}, {0, "XDEL {2}y 5-1"},
         {0, "SET {2}t 1 PXAT 4102444800000"});
    open_slot();
    EACH({0, "MIGRATE 127.0.0.1 PORT1 '' 0 5000 COPY KEYS {2}s {2}no"}, {0, "GET {2}s"},
         {0, "MIGRATE 127.0.0.1 PORT1 {2}s 0 5000"},
         {0, "MIGRATE 127.0.0.1 PORT1 '' 0 5000 REPLACE KEYS {2}s {2}h {2}l {2}i {2}z {2}x {2}y {2}t"},
         {0, "MIGRATE 127.0.0.1 PORT1 '' 0 5000 KEYS {2}s"}, {0, "MIGRATE 127.0.0.1 PORT1 '' 0 5000 WRONG KEYS {2}s"},
         {0, "CLUSTER COUNTKEYSINSLOT 5649"}, {2, "CLUSTER SETSLOT 5649 NODE ID1"}, {2, "GET {2}s"},
         {2, "HGETALL {2}h"}, {2, "LRANGE {2}l 0 -1"}, {2, "SMEMBERS {2}i"}, {2, "ZRANGE {2}z 0 -1 WITHSCORES"},
         {2, "XRANGE {2}x - +"}, {2, "XADD {2}y 5-1 a b"}, {2, "PEXPIRETIME {2}t"}, {2, "TTL {2}s"});
}

Test(simredis_cluster, migrate_leaves_what_the_target_does_not_take)
{
    EACH({0, "SET {2}a 1"}, {0, "SET {2}b 1"});
    open_slot();
    EACH({2, "ASKING;SET {2}a 2"}, {0, "MIGRATE 127.0.0.1 PORT1 {2}a 0 5000"}, {0, "GET {2}a"},
         {0, "MIGRATE 127.0.0.1 1 {2}a 0 5000"}, {0, "GET {2}a"},
         {0, "MIGRATE 127.0.0.1 PORT1 {2}b 0 5000 AUTH2 nobody nothing"}, {0, "GET {2}b"});
}

Test(simredis_cluster, a_slot_that_has_moved_is_served_by_its_new_owner)
{
    EACH({1, "SSUBSCRIBE {2}c {2}d"}, {1, "SSUBSCRIBE {3}e"}, {0, "SET {2}a 1"}, {0, "SPUBLISH {2}c x"});
    open_slot();
    EACH({0, "SPUBLISH {2}c y"}, {1, ""}, {0, "MIGRATE 127.0.0.1 PORT1 {2}a 0 5000"},
         {2, "CLUSTER SETSLOT 5649 NODE ID1"}, {2, "GET {2}a"}, {2, "CLUSTER INFO"});
    await(0, "GET {2}a"); /* it hears of the higher epoch */
    await(0, "CLUSTER NODES");
    EACH({0, "SPUBLISH {2}c z"}, {0, "SPUBLISH {3}e z"}, {1, ""}, {0, "CLUSTER SETSLOT 5649 NODE ID1"},
         {1, "SSUBSCRIBE {2}c"}, {1, "SUNSUBSCRIBE {3}e"}, {2, "SPUBLISH {2}c z"}, {0, "CLUSTER INFO"});
}

Test(simredis_cluster, an_owner_that_is_told_ends_the_subscriptions_of_the_slot)
{
    EACH({1, "SSUBSCRIBE {2}d"}, {1, "SUBSCRIBE {2}d"}, {0, "CLUSTER SETSLOT 5649 NODE ID1"}, {1, ""},
         {0, "PUBLISH {2}d x"}, {1, ""}, {0, "GET {2}a"}, {1, "SUNSUBSCRIBE {2}d"});
}

Test(simredis_cluster, keys_of_a_slot_that_was_lost_are_deleted)
{
    EACH({0, "SET {2}a 1"});
    open_slot();
    EACH({2, "CLUSTER SETSLOT 5649 NODE ID1"}, {2, "GET {2}a"});
    await(0, "GET {2}a");
    await(0, "DBSIZE");
    await(0, "CLUSTER COUNTKEYSINSLOT 5649");
}

Test(simredis_cluster, a_slot_that_nobody_has_is_not_served)
{
    EACH({0, "CLUSTER DELSLOTS 5649"}, {0, "GET {2}a"}, {0, "GET {3}a"}, {0, "CLUSTER DELSLOTS 5649"},
         {0, "SPUBLISH {2}a x"}, {0, "CONFIG SET cluster-require-full-coverage yes"}, {0, "CLUSTER DELSLOTS 5648"},
         {0, "GET {3}a"}, {0, "GET {2}a"}, {0, "EVAL return_redis.call('GET',ARGV[1]) 0 {3}a"}, {0, "SPUBLISH {3}a x"},
         {0, "CLUSTER INFO"}, {0, "PING"});
}

Test(simredis_cluster, a_dump_is_restored_once)
{
    EACH({0, "SET {2}a 1"}, {0, "RESTORE {2}a 0 x"}, {0, "RESTORE {2}a -1 x REPLACE"}, {0, "RESTORE {2}b 0 x"},
         {0, "RESTORE {2}b 0 x WRONG"}, {0, "DUMP {2}no"});
}

/* Alone: no Redis says by when. */

Test(simredis_cluster, whoever_reaches_no_majority_is_down_until_it_does_again)
{
    struct client *client = &w.clients[0];

    w.now_us += UINT64_C(31000000);
    simredis_run(w.simulated[0]);
    send_to(client, "GET {2}a", false, true);
    cr_expect(strstr(plain(&client->replies[0], ""), "CLUSTERDOWN The cluster is down"));
    for (unsigned i = 0; i < 60; i++)
        tick();
    forget(client);
    send_to(client, "GET {2}a", false, true);
    cr_expect(strstr(plain(&client->replies[0], ""), "$-1"), "%s", plain(&client->replies[0], ""));
}

Test(simredis_cluster, what_is_kept_says_the_same_again)
{
    char *before, *after;
    struct simredis *server = w.simulated[0];

    EACH({0, "SET {2}a 1"});
    open_slot();
    before = simredis_nodes(server);
    for (unsigned i = 0; i < CLIENTS_EACH; i++)
        simredis_disconnect(w.clients[i].simulated);
    simredis_free(server);
    simulate(0);
    after = simredis_nodes(w.simulated[0]);
    cr_expect(strstr(before, "myself,master - 0 0 1 connected 0-8191 [5649->-"), "%s", before);
    cr_expect(strstr(after, "myself,master - 0 0 1 connected 0-8191 [5649->-"), "%s", after);
    free(before);
    free(after);
}

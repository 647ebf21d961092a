/* What members of a cluster of simredis tell each other, where no Redis says by when: three of them, any of which may
 * be cut off. */
#include "base/list.h"
#include "base/mem.h"
#include "leak_guard.h"
#include "simredis_cluster.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 3, TICK_US = 100000, TICKS_A_SECOND = 10, PORT = 7000, NODES_BYTES = 1024 };

struct told {
    struct list node;
    unsigned to;
    size_t length;
    char bytes[];
};

static struct {
    struct simredis *servers[MEMBERS];
    struct buf replies;
    struct list told;
    bool is_cut[MEMBERS];
    uint64_t now_us;
} w;

static uint64_t unix_us(void *context)
{
    (void)context;
    return w.now_us;
}

static uint64_t random_number(void *context)
{
    (void)context;
    return 7;
}

static void on_send(void *client, const char *bytes, size_t length)
{
    (void)client;
    buf_append(&w.replies, bytes, length);
}

static void on_close(void *client)
{
    (void)client;
}

static unsigned number_of(const struct simredis *server)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        if (w.servers[i] == server)
            return i;
    return MEMBERS;
}

static void tell(void *context, const char *host, uint16_t port, const char *bytes, size_t length)
{
    const unsigned from = number_of(*(struct simredis **)context), to = (unsigned)port - PORT;
    struct told *told;

    (void)host;
    if (w.is_cut[from] || w.is_cut[to])
        return;
    told = mem_alloc(sizeof *told + length);
    *told = (struct told){.to = to, .length = length};
    memcpy(told->bytes, bytes, length);
    list_append(&w.told, &told->node);
}

static bool ask_nobody(void *context, const char *host, uint16_t port, const char *bytes, size_t length,
                       struct buf *ret_replies)
{
    (void)context, (void)host, (void)port, (void)bytes, (void)length, (void)ret_replies;
    return false;
}

static void tick(void)
{
    struct list *node;

    w.now_us += TICK_US;
    for (unsigned i = 0; i < MEMBERS; i++)
        simredis_run(w.servers[i]);
    while ((node = list_take(&w.told))) {
        struct told *told = LIST_ENTRY(node, struct told, node);

        simredis_hear(w.servers[told->to], told->bytes, told->length);
        free(told);
    }
}

static void pass(unsigned seconds)
{
    for (unsigned i = 0; i < seconds * TICKS_A_SECOND; i++)
        tick();
}

/* Slots by thirds; epochs: of each. */
static void print_nodes(unsigned me, const unsigned epochs[MEMBERS], char *ret_nodes)
{
    int len = 0;

    for (unsigned i = 0; i < MEMBERS; i++)
        len += snprintf(ret_nodes + len, NODES_BYTES - (size_t)len,
                        "%040u 10.0.0.%u:%u@17000 %smaster - 0 0 %u connected %u-%u\n", i + 1, i + 1, PORT + i,
                        i == me ? "myself," : "", epochs[i], i * 5461, i == 2 ? 16383 : i * 5461 + 5460);
}

static void serve(unsigned number, const char *nodes)
{
    static const struct simredis_bus BUS = {tell, ask_nobody};
    const struct simredis_host host = {
        .context = &w.servers[number], .unix_us = unix_us, .random = random_number, .send = on_send, .close = on_close};

    w.servers[number] = simredis_new(&host);
    cr_assert(simredis_configure(w.servers[number], "cluster-node-timeout", "2000") &&
              simredis_configure(w.servers[number], "cluster-require-full-coverage", "no") &&
              simredis_join(w.servers[number], &BUS, nodes));
}

static void begin_with(const unsigned epochs[MEMBERS])
{
    char nodes[NODES_BYTES];

    w.now_us = UINT64_C(1795000000000000);
    buf_init(&w.replies, SIZE_MAX / 2);
    list_init(&w.told);
    for (unsigned i = 0; i < MEMBERS; i++) {
        print_nodes(i, epochs, nodes);
        serve(i, nodes);
    }
    pass(3);
}

static void begin(void)
{
    begin_with((const unsigned[]){1, 2, 3});
}

static void end(void)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        simredis_free(w.servers[i]);
    buf_finish(&w.replies);
    leak_guard();
}

TestSuite(simredis_members, .fini = end);

static const char *ask(unsigned number, const char *command)
{
    struct simredis_client *client = simredis_connect(w.servers[number], NULL);

    buf_clear(&w.replies);
    simredis_receive(client, command, strlen(command));
    simredis_receive(client, "\r\n", 2);
    simredis_disconnect(client);
    buf_append_char(&w.replies, '\0');
    return w.replies.ptr;
}

static bool is_up(unsigned number)
{
    return strstr(ask(number, "CLUSTER INFO"), "cluster_state:ok") != NULL;
}

Test(simredis_members, whoever_most_do_not_reach_has_failed_and_is_down_itself)
{
    begin();
    cr_assert(is_up(0) && is_up(1) && is_up(2));
    w.is_cut[2] = true;
    pass(4);
    cr_expect(strstr(ask(0, "CLUSTER NODES"), "master,fail "), "%s", w.replies.ptr);
    cr_expect(strstr(ask(2, "CLUSTER NODES"), "master,fail? "), "%s", w.replies.ptr);
    cr_expect(!strstr(ask(2, "CLUSTER NODES"), "master,fail "), "it is alone with that: %s", w.replies.ptr);
    cr_expect(is_up(0) && is_up(1) && !is_up(2));
    cr_expect(strstr(ask(2, "GET {0}"), "CLUSTERDOWN"));
    cr_expect(strstr(ask(0, "GET {0}"), "MOVED 13907 10.0.0.3:7002"));
    w.is_cut[2] = false;
    pass(1);
    cr_expect(!is_up(2), "it waits for news, as long as cluster-node-timeout");
    cr_expect(strstr(ask(0, "CLUSTER NODES"), "master,fail "), "not believed yet");
    pass(5);
    cr_expect(is_up(2));
    cr_expect(!strstr(ask(0, "CLUSTER NODES"), "fail"));
}

Test(simredis_members, slots_of_one_that_has_failed_may_be_missed)
{
    begin();
    cr_assert(simredis_configure(w.servers[0], "cluster-require-full-coverage", "yes"));
    w.is_cut[2] = true;
    pass(4);
    cr_expect(!is_up(0) && is_up(1));
    w.is_cut[2] = false;
    pass(6);
    cr_expect(is_up(0));
}

Test(simredis_members, of_two_with_one_epoch_one_takes_another)
{
    begin_with((const unsigned[]){3, 2, 3});
    cr_expect(strstr(ask(0, "CLUSTER INFO"), "cluster_my_epoch:4"), "%s", w.replies.ptr);
    cr_expect(strstr(ask(2, "CLUSTER INFO"), "cluster_current_epoch:4"), "%s", w.replies.ptr);
    cr_expect(strstr(ask(2, "CLUSTER INFO"), "cluster_my_epoch:3"), "%s", w.replies.ptr);
}

Test(simredis_members, an_old_owner_that_returns_hears_who_the_new_one_is)
{
    char nodes[NODES_BYTES];

    begin();
    w.is_cut[0] = true;
    ask(1, "CLUSTER SETSLOT 1584 IMPORTING 0000000000000000000000000000000000000001");
    ask(1, "CLUSTER SETSLOT 1584 NODE 0000000000000000000000000000000000000002");
    simredis_free(w.servers[0]);
    print_nodes(0, (const unsigned[]){1, 2, 3}, nodes);
    serve(0, nodes);
    pass(3);
    w.is_cut[1] = true; /* so another one says it */
    w.is_cut[0] = false;
    pass(3);
    cr_expect(is_up(0));
    cr_expect(strstr(ask(0, "GET {3}"), "MOVED 1584 10.0.0.2:7001"), "%s", w.replies.ptr);
}

Test(simredis_members, a_calendar_that_is_set_back_stops_nobody)
{
    begin();
    w.now_us -= UINT64_C(60000000);
    pass(3);
    cr_expect(is_up(0) && is_up(1) && is_up(2));
    w.is_cut[2] = true;
    pass(4);
    cr_expect(is_up(0) && !is_up(2));
}

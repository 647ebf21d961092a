/* Sentinels of the simulation: what clients hear from them, and who is the master when something is lost. */
#include "deadline.h"
#include "net.h"
#include "redises.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(sim_sentinels, .timeout = TEST_WITHIN_S);

enum { SETTLE_MS = 3000, FAILOVER_MS = 5000, MEND_MS = 6000 };

static struct sim_redises redises;

static void begin(void)
{
    struct sim_host *hosts[SIM_REDISES_HOSTS];

    net_begin(7);
    sim_redises_make_hosts(&redises, hosts);
    sim_redises_start(&redises);
    net_run_for_ms(SETTLE_MS);
}

static void cut(struct sim_host *a, struct sim_host *b, bool is_cut)
{
    sim_link_cut(a, b, is_cut);
    sim_link_cut(b, a, is_cut);
}

/* The first Redis and the first Sentinel see each other alone. */
static void part(bool is_cut)
{
    for (unsigned i = 1; i < SIM_WATCHED; i++) {
        cut(redises.hosts[0], redises.hosts[i], is_cut);
        cut(redises.hosts[0], redises.sentinel_hosts[i], is_cut);
        cut(redises.sentinel_hosts[0], redises.hosts[i], is_cut);
        cut(redises.sentinel_hosts[0], redises.sentinel_hosts[i], is_cut);
    }
}

static void expect_named(unsigned master, unsigned from)
{
    for (unsigned i = from; i < SIM_SENTINELS; i++)
        cr_expect_eq(sim_sentinel_master(redises.sentinels[i]), master, "sentinel %u", i);
}

Test(sim_sentinels, a_master_that_is_killed_is_replaced_and_comes_back_as_a_replica)
{
    begin();
    expect_named(0, 0);
    sim_server_tell(redises.servers[0], "SET a 1");
    net_run_for_ms(1);
    sim_server_kill(redises.servers[0]);
    net_run_for_ms(FAILOVER_MS);
    cr_assert_neq(redises.master, 0);
    expect_named(redises.master, 0);
    cr_expect(sim_server_has(redises.servers[redises.master], "a"));
    sim_server_tell(redises.servers[redises.master], "SET b 1");
    sim_server_restart(redises.servers[0], SIM_DISK_WHOLE);
    cr_expect_not(sim_server_has(redises.servers[0], "b"));
    net_run_for_ms(MEND_MS);
    cr_expect(sim_server_has(redises.servers[0], "b"));
    expect_named(redises.master, 0);
}

Test(sim_sentinels, a_master_that_is_cut_off_goes_on_until_it_hears_and_then_loses_what_it_did)
{
    begin();
    part(true);
    sim_server_tell(redises.servers[0], "SET lost 1");
    net_run_for_ms(FAILOVER_MS);
    expect_named(redises.master, 1);
    cr_assert_neq(redises.master, 0);
    cr_expect_eq(sim_sentinel_master(redises.sentinels[0]), 0, "it has heard nothing");
    cr_expect(sim_server_has(redises.servers[0], "lost"));
    sim_server_tell(redises.servers[0], "SET refused 1");
    cr_expect_not(sim_server_has(redises.servers[0], "refused"), "it has no replicas");
    part(false);
    net_run_for_ms(MEND_MS);
    expect_named(redises.master, 0);
    cr_expect_not(sim_server_has(redises.servers[0], "lost"));
}

Test(sim_sentinels, one_sentinel_alone_replaces_nobody)
{
    begin();
    for (unsigned i = 0; i < SIM_WATCHED; i++)
        cut(redises.sentinel_hosts[2], redises.hosts[i], true);
    net_run_for_ms(FAILOVER_MS);
    expect_named(0, 0);
    cr_expect_eq(sim_sentinel_epoch(redises.sentinels[2]), 0);
}

Test(sim_sentinels, whoever_has_heard_most_takes_over)
{
    begin();
    cut(redises.hosts[0], redises.hosts[1], true);
    sim_server_tell(redises.servers[0], "SET a 1");
    net_run_for_ms(1000);
    sim_server_kill(redises.servers[0]);
    net_run_for_ms(FAILOVER_MS);
    expect_named(2, 0);
    cr_expect(sim_server_has(redises.servers[1], "a"), "the other one follows it");
}

static void expect_reply(struct net_client *client, const char *request, const char *reply)
{
    client->heard.len = 0;
    net_send(client, request, strlen(request));
    NET_RUN_UNTIL(client->heard.len >= strlen(reply));
    cr_expect(client->heard.len == strlen(reply) && memcmp(client->heard.bytes, reply, strlen(reply)) == 0, "%.*s",
              (int)client->heard.len, client->heard.bytes);
}

Test(sim_sentinels, clients_are_told)
{
    static struct net_client client;

    begin();
    net_be_at(net_near);
    net_connect(&client, "10.0.0.111", 26379);
    NET_RUN_UNTIL(client.is_connected);
    expect_reply(&client, "SENTINEL MASTER -\r\n", "-ERR No such master with that name\r\n");
    expect_reply(&client, "CLIENT SETNAME a\r\nPING\r\n", "+OK\r\n+PONG\r\n");
    expect_reply(&client, "SENTINEL GET-MASTER-ADDR-BY-NAME main\r\n", "*2\r\n$10\r\n10.0.0.100\r\n$4\r\n6379\r\n");
    expect_reply(
        &client, "SENTINEL MASTER main\r\n",
        "*14\r\n$4\r\nname\r\n$4\r\nmain\r\n$2\r\nip\r\n$10\r\n10.0.0.100\r\n$4\r\nport\r\n$4\r\n6379\r\n"
        "$12\r\nconfig-epoch\r\n$1\r\n0\r\n$10\r\nnum-slaves\r\n$1\r\n2\r\n$19\r\nnum-other-sentinels\r\n$1\r\n2"
        "\r\n$6\r\nquorum\r\n$1\r\n2\r\n");
    expect_reply(&client, "SUBSCRIBE +switch-master\r\n", "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
    client.heard.len = 0;
    sim_sentinel_failover(redises.sentinels[0]);
    NET_RUN_UNTIL(client.heard.len > 0);
    cr_expect(memmem(client.heard.bytes, client.heard.len, "main 10.0.0.100 6379 10.0.0.10", 30));
    net_close(&client);
}

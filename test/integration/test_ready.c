/* `chatelaine ready`: what a health check is told. */
#include "fixture.h"
#include "free_port.h"
#include "http_client.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(ready, .fini = leak_guard, .timeout = TEST_WITHIN_S);

/* The exit code; what it said on standard error goes to ret_said. */
static int ask(const struct fixture *fixture, const char *address, char *ret_said, size_t size)
{
    const char *argv[] = {node_binary(), "ready", "--internal-listen", address, NULL};
    struct process process;
    int code = process_run(&process, fixture->folder, "ready", argv, NULL, PATIENCE_MS);
    char *err = file_read(process.err_path);

    snprintf(ret_said, size, "%s", err);
    free(err);
    file_write(process.err_path, "");
    return code;
}

/* Until the node serves: on a busy machine, its answer may come too late for the command. */
static void await_ready(const struct fixture *fixture, const char *address)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char said[1024];

    while (ask(fixture, address, said, sizeof said) != 0)
        cr_assert(deadline_left_ms(deadline) > 0 && poll(NULL, 0, 50) == 0, "%s: %s", address, said);
    cr_expect_str_empty(said);
}

static void address_of(const struct fixture *fixture, const char *host, char *ret_address, size_t size)
{
    snprintf(ret_address, size, "%s:%u", host, (unsigned)fixture->nodes[0].internal_port);
}

Test(ready, tells_a_node_that_serves_from_one_that_does_not)
{
    struct deadline deadline;
    struct fixture fixture;
    char address[64], everywhere[64], said[1024];

    fixture_start(&fixture, 1, (const char *const[]){"--redis-timeout-ms", "1000", NULL});
    address_of(&fixture, "127.0.0.1", address, sizeof address);
    address_of(&fixture, "0.0.0.0", everywhere, sizeof everywhere);
    await_ready(&fixture, address);
    await_ready(&fixture, everywhere);

    redis_server_freeze(&fixture.redis);
    deadline = deadline_in(PATIENCE_MS);
    while (ask(&fixture, address, said, sizeof said) != 1 || !strstr(said, "is not ready"))
        cr_assert(deadline_left_ms(deadline) > 0 && poll(NULL, 0, 50) == 0, "%s", said);
    cr_expect_not_null(strstr(said, "unavailable"), "why: %s", said);
    redis_server_thaw(&fixture.redis);

    process_signal(&fixture.nodes[0].process, SIGSTOP);
    cr_expect_eq(ask(&fixture, address, said, sizeof said), 1, "a node that hangs");
    cr_expect_not_null(strstr(said, "does not answer"), "%s", said);
    process_signal(&fixture.nodes[0].process, SIGCONT);
    node_stop(&fixture.nodes[0]);
    cr_expect_eq(ask(&fixture, address, said, sizeof said), 1, "a node that has ended");
    cr_expect_not_null(strstr(said, "does not answer"), "%s", said);
    fixture_stop(&fixture);
}

/* Else a gateway that does not look at /readyz would send it requests, and pass 503 on for those that it may not
 * repeat. */
Test(ready, connections_are_refused_until_it_serves)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture fixture;
    struct process process;
    struct http_client client;
    uint16_t port = free_port(), internal_port = free_port();
    char listen[64], internal[64], said[1024];

    fixture_start(&fixture, 0, NULL);
    redis_server_freeze(&fixture.redis);
    snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
    snprintf(internal, sizeof internal, "127.0.0.1:%u", internal_port);
    const char *argv[] = {node_binary(),
                          "serve",
                          "--public-origin",
                          NODE_ORIGIN,
                          "--listen",
                          listen,
                          "--internal-listen",
                          internal,
                          "--redis",
                          fixture.redis.url,
                          "--master-key-file",
                          fixture.master_key_path,
                          NULL};
    process_start(&process, fixture.folder, "early", argv);
    while (ask(&fixture, internal, said, sizeof said) != 1 || !strstr(said, "is not ready"))
        cr_assert(deadline_left_ms(deadline) > 0 && poll(NULL, 0, 50) == 0, "%s", said);
    cr_expect_not(http_client_try_connect(&client, port));
    redis_server_thaw(&fixture.redis);
    await_ready(&fixture, internal);
    cr_assert(http_client_try_connect(&client, port));
    http_client_close(&client);
    process_signal(&process, SIGTERM);
    cr_expect(process_wait(&process, PATIENCE_MS));
    fixture_stop(&fixture);
}

/* As serve takes them; one that stands for all addresses is asked on the loopback one. */
Test(ready, asks_wherever_a_node_may_listen)
{
    static const struct {
        const char *listen, *asked; /* without its port */
    } CASES[] = {{"[::1]:0", "[::1]"}, {"[::]:0", "[::]"}, {"0.0.0.0:0", "0.0.0.0"}};
    struct fixture fixture;
    char address[PROCESS_PATH_BYTES], said[1024];

    fixture_start(&fixture, 0, NULL);
    snprintf(address, sizeof address, "unix:%.150s/internal.sock", fixture.folder);
    fixture_add_node(&fixture, (const char *const[]){"--internal-listen", address, NULL});
    await_ready(&fixture, address);
    node_stop(&fixture.nodes[0]);
    cr_expect_eq(ask(&fixture, address, said, sizeof said), 1, "nobody listens there any more");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        if (CASES[i].listen[0] == '[' && !machine_has_ipv6())
            continue;
        fixture.node_count = 0;
        fixture_add_node(&fixture, (const char *const[]){"--internal-listen", CASES[i].listen, NULL});
        address_of(&fixture, CASES[i].asked, address, sizeof address);
        await_ready(&fixture, address);
        node_stop(&fixture.nodes[0]);
    }
    fixture_stop(&fixture);
}

static void serves_on_everything(struct fixture *fixture, bool has_ipv6)
{
    static const char *const ALL[] = {"--listen", "[::]:0", "--internal-listen", "[::]:0", NULL};
    static const char *const HOSTS[] = {"[::]", "127.0.0.1", "[::1]"};
    struct http_answer answer;
    char address[64];

    fixture->node_count = 0;
    fixture_add_node(fixture, ALL);
    for (size_t i = 0; i < sizeof HOSTS / sizeof *HOSTS - !has_ipv6; i++) {
        address_of(fixture, HOSTS[i], address, sizeof address);
        await_ready(fixture, address);
    }
    cr_expect_eq(http_call(fixture->nodes[0].port, &(struct http_call){.target = "/v1/whoami"}, &answer), 401);
    node_stop(&fixture->nodes[0]);
}

/* The default in containers. */
Test(ready, all_addresses_are_those_of_both_families_or_of_ipv4_where_ipv6_is_off)
{
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    serves_on_everything(&fixture, machine_has_ipv6());
    machine_lose_ipv6();
    serves_on_everything(&fixture, false);
    fixture_stop(&fixture);
}

Test(ready, refuses_addresses_that_are_none)
{
    /* A host, and a path that would need one byte more than there is room for. */
    static const char HOST[] = "[::1%xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]:8081";
    static const char PATH[] = "unix:/23456789012345678901234567890123456789012345678901234567890123456789"
                               "01234567890123456789012345678901234567.";
    static const char *const CASES[] = {"8081",      "localhost:8081", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
                                        "[::1:8081", "unix:",          ":8081",      "[::1]:0",     HOST,
                                        PATH};
    struct fixture fixture = {0};
    char said[1024];

    folder_make(fixture.folder);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_expect_eq(ask(&fixture, CASES[i], said, sizeof said), 2, "%s", CASES[i]);
        cr_expect_not_null(strstr(said, "--internal-listen"), "%s: %s", CASES[i], said);
    }
    folder_remove(fixture.folder);
}

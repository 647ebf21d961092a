/* What a node tells systemd (sd_notify(3)). */
#include "fixture.h"
#include "leak_guard.h"
#include "notify_socket.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(notify, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define LEASE_STATUS "STATUS=serves; lease held, checks are answered from memory"

static struct notify_socket notify;
static char message[NOTIFY_MESSAGE_BYTES];

static void start(struct fixture *fixture, const char *watchdog_usec)
{
    char path[PROCESS_PATH_BYTES];

    fixture_start(fixture, 0, NULL);
    snprintf(path, sizeof path, "%.80s/notify", fixture->folder);
    notify_socket_open(&notify, path);
    if (watchdog_usec)
        setenv("WATCHDOG_USEC", watchdog_usec, 1);
    fixture_add_node(fixture, (const char *const[]){"--redis-timeout-ms", "1000", "--head-timeout-ms", "600000",
                                                    "--drain-ms", "30000", NULL});
}

static void stop(struct fixture *fixture)
{
    notify_socket_close(&notify);
    fixture_stop(fixture);
}

Test(notify, ready_is_told_when_the_node_serves_and_its_lease_after_that)
{
    struct fixture fixture;

    start(&fixture, NULL);
    cr_expect(notify_socket_await(&notify, "READY=1", message));
    cr_expect_eq(access(fixture.nodes[0].ready_path, R_OK), 0, "told before it served");
    cr_expect(strstr(message, "STATUS=serves") || strstr(message, LEASE_STATUS), "%s", message);
    cr_expect(strstr(message, LEASE_STATUS) || notify_socket_await(&notify, LEASE_STATUS, message));
    cr_expect_null(strstr(message, "WATCHDOG"), "no watchdog was asked for");
    stop(&fixture);
}

Test(notify, an_outage_of_redis_changes_the_status)
{
    struct fixture fixture;

    start(&fixture, NULL);
    cr_assert(notify_socket_await(&notify, LEASE_STATUS, message) || strstr(message, LEASE_STATUS));
    redis_server_freeze(&fixture.redis);
    do
        cr_assert(notify_socket_await(&notify, "STATUS=", message));
    while (!strstr(message, "STATUS=answers 503: Redis cannot be reached"));
    redis_server_thaw(&fixture.redis);
    cr_expect(notify_socket_await(&notify, LEASE_STATUS, message));
    stop(&fixture);
}

static void wait_until_stopped(const struct process *process)
{
    char path[64], *content;
    struct deadline deadline = deadline_in(PATIENCE_MS);
    bool is_stopped = false;

    snprintf(path, sizeof path, "/proc/%d/status", (int)process->pid);
    while (!is_stopped && deadline_left_ms(deadline) > 0) {
        content = file_read(path);
        is_stopped = strstr(content, "State:\tT");
        free(content);
    }
    cr_assert(is_stopped);
}

Test(notify, the_watchdog_hears_the_loop_and_nothing_while_it_hangs)
{
    struct fixture fixture;

    start(&fixture, "300000");
    for (unsigned i = 0; i < 5; i++)
        cr_assert(notify_socket_await(&notify, "WATCHDOG=1", message));
    process_signal(&fixture.nodes[0].process, SIGSTOP);
    wait_until_stopped(&fixture.nodes[0].process);
    notify_socket_drain(&notify);
    cr_expect_not(notify_socket_read(&notify, 600, message), "%s", message);
    process_signal(&fixture.nodes[0].process, SIGCONT);
    cr_expect(notify_socket_await(&notify, "WATCHDOG=1", message));
    stop(&fixture);
}

Test(notify, a_reload_begins_and_ends)
{
    struct fixture fixture;

    start(&fixture, NULL);
    cr_assert(notify_socket_await(&notify, "READY=1", message));
    process_signal(&fixture.nodes[0].process, SIGHUP);
    cr_expect(notify_socket_await(&notify, "RELOADING=1", message));
    cr_expect_not_null(strstr(message, "\nMONOTONIC_USEC="), "%s", message);
    cr_expect(notify_socket_await(&notify, "READY=1", message));
    stop(&fixture);
}

Test(notify, a_drain_is_told_at_once_and_asks_for_time)
{
    struct fixture fixture;
    struct http_client client;
    static const char HALF[] = "GET /v1/whoami HTTP/1.1\r\n";

    start(&fixture, NULL);
    http_client_connect(&client, fixture.nodes[0].port);
    cr_assert(http_client_send(&client, HALF, strlen(HALF)));
    fixture_await_read(&fixture, 0);
    process_signal(&fixture.nodes[0].process, SIGTERM);
    cr_assert(notify_socket_await(&notify, "STOPPING=1", message));
    cr_expect_not_null(strstr(message, "EXTEND_TIMEOUT_USEC="), "%s", message);
    cr_expect_not_null(strstr(message, "STATUS=drains: "), "%s", message);
    cr_expect(notify_socket_await(&notify, "EXTEND_TIMEOUT_USEC=", message), "while it still drains");
    cr_expect_null(strstr(message, "READY=1"), "%s", message);
    http_client_close(&client);
    node_expect_clean_end(&fixture.nodes[0]);
    stop(&fixture);
}

/* 'systemctl status' shows the last status of a unit that has failed. */
static void expect_last_status(struct fixture *fixture, const char *option, const char *value, int code,
                               const char *status)
{
    const char *const argv[] = {node_binary(),
                                "serve",
                                "--redis",
                                fixture->redis.url,
                                "--master-key-file",
                                fixture->master_key_path,
                                "--public-origin",
                                NODE_ORIGIN,
                                "--listen",
                                "127.0.0.1:0",
                                "--internal-listen",
                                "127.0.0.1:0",
                                option,
                                value,
                                NULL};
    struct process serve;

    process_start(&serve, fixture->folder, "unfit", argv);
    do
        cr_assert(notify_socket_await(&notify, "STATUS=", message), "%s", status);
    while (strstr(message, "STATUS=starts") || strstr(message, "STATUS=waits"));
    cr_expect_not_null(strstr(message, status), "%s", message);
    cr_assert(process_wait(&serve, PATIENCE_MS));
    cr_expect_eq(process_exit_code(&serve), code);
    notify_socket_drain(&notify);
}

Test(notify, a_node_that_does_not_start_says_why_in_its_last_status)
{
    struct fixture fixture;
    char path[PROCESS_PATH_BYTES];

    fixture_use_one_redis("a cluster without replicas is unsafe already");
    fixture_start(&fixture, 0, NULL);
    snprintf(path, sizeof path, "%.80s/notify", fixture.folder);
    notify_socket_open(&notify, path);
    expect_last_status(&fixture, "--policy-file", "/nonexistent", 2,
                       "STATUS=stops: --policy-file /nonexistent: cannot open /nonexistent: No such file");
    redis_server_tell(&fixture.redis, "CONFIG", "SET", "appendfsync", "everysec", NULL);
    expect_last_status(&fixture, "--keys-max", "7", 3, "STATUS=stops: Redis does not sync each write to disk, so a");
    stop(&fixture);
}

/* Only a person can end this wait, so starting the unit does not wait either. */
Test(notify, a_store_without_an_account_is_told_as_ready_with_what_to_do)
{
    struct fixture fixture;
    struct process serve;
    char path[PROCESS_PATH_BYTES];

    fixture_start(&fixture, 0, NULL);
    redis_server_tell_all(&fixture.redis, "FLUSHALL", NULL);
    snprintf(path, sizeof path, "%.80s/notify", fixture.folder);
    notify_socket_open(&notify, path);
    const char *const argv[] = {
        node_binary(),           "serve",           "--redis",   fixture.redis.url, "--master-key-file",
        fixture.master_key_path, "--public-origin", NODE_ORIGIN, "--listen",        "127.0.0.1:0",
        "--internal-listen",     "127.0.0.1:0",     NULL};
    process_start(&serve, fixture.folder, "empty", argv);
    cr_expect(notify_socket_await(&notify, "READY=1", message));
    cr_expect_not_null(strstr(message, "STATUS=waits for the first account: run 'chatelaine account create'"), "%s",
                       message);
    process_signal(&serve, SIGTERM);
    cr_expect(process_wait(&serve, PATIENCE_MS));
    stop(&fixture);
}

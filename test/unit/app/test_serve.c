/* How a node stops: the binary, a request under way, and signals. */
#include "http_client.h"
#include "deadline.h"
#include "leak_guard.h"
#include "process.h"
#include "redis_server.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MASTER_KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
/* The id that the first account would have created. */
#define STORE_ID "00112233445566778899aabbccddeeff"
#define HALF_A_HEAD "GET /v1/whoami HTTP/1.1\r\nHost: t\r\n"

static struct redis_server redis;
static struct process serve;
static struct http_client client; /* with an unfinished request */
static uint16_t internal_port;

static uint16_t port_in(const char *ready, const char *name)
{
    const char *at = strstr(ready, name);

    cr_assert(at);
    at = strstr(at, "127.0.0.1:");
    cr_assert(at);
    return (uint16_t)strtoul(at + strlen("127.0.0.1:"), NULL, 10);
}

static void start_serve(void)
{
    char key_path[PROCESS_PATH_BYTES + 16], ready_path[PROCESS_PATH_BYTES + 16];
    struct deadline deadline = deadline_in(PATIENCE_MS);

    redis_server_start(&redis, NULL);
    redis_server_tell(&redis, "HSET", "chatelaine:store", "id", STORE_ID, NULL);
    snprintf(key_path, sizeof key_path, "%s/key", redis.folder);
    snprintf(ready_path, sizeof ready_path, "%s/ready", redis.folder);
    file_write(key_path, MASTER_KEY);
    cr_assert_eq(chmod(key_path, 0600), 0);
    const char *const argv[] = {getenv("CHATELAINE_BINARY"),
                                "serve",
                                "--redis",
                                redis.url,
                                "--master-key-file",
                                key_path,
                                "--public-origin",
                                "https://console.test",
                                "--listen",
                                "127.0.0.1:0",
                                "--internal-listen",
                                "127.0.0.1:0",
                                "--ready-file",
                                ready_path,
                                "--head-timeout-ms",
                                "90000", /* of the half head, until it is completed */
                                NULL};
    process_start(&serve, redis.folder, "serve", argv);
    while (access(ready_path, R_OK) != 0)
        if (process_wait(&serve, 10) || deadline_left_ms(deadline) == 0)
            test_give_up("the node did not become ready");
    char *ready = file_read(ready_path);
    internal_port = port_in(ready, "\"internal_listen\"");
    http_client_connect(&client, port_in(ready, "\"listen\""));
    cr_assert(http_client_send(&client, HALF_A_HEAD, strlen(HALF_A_HEAD)));
    free(ready);
}

static void stop_redis(void)
{
    http_client_close(&client);
    redis_server_stop(&redis);
    leak_guard();
}

TestSuite(serve, .init = start_serve, .fini = stop_redis, .timeout = TEST_WITHIN_S);

static void wait_until_drains(void)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    process_signal(&serve, SIGTERM);
    while (!file_contains(serve.err_path, "the node drains"))
        cr_assert_gt(deadline_left_ms(deadline), 0);
}

static int readiness(void)
{
    struct http_answer answer;

    return http_call(internal_port, &(struct http_call){.target = "/readyz"}, &answer);
}

Test(serve, answers_what_comes_while_it_drains_and_tells_probes_meanwhile)
{
    struct http_answer answer;

    cr_expect_eq(readiness(), 200);
    wait_until_drains();
    cr_expect_eq(readiness(), 503);
    cr_assert(http_client_send(&client, "\r\n", 2));
    cr_expect_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_expect_eq(answer.status, 401);
    cr_expect_not_null(strstr(answer.head, "Connection: close"));
    cr_assert(process_wait(&serve, PATIENCE_MS));
    cr_expect_eq(process_exit_code(&serve), 0);
    cr_expect_not(file_contains(serve.err_path, "Sanitizer"));
}

Test(serve, ends_at_once_on_a_second_signal)
{
    cr_expect_eq(readiness(), 200);
    wait_until_drains();
    cr_expect_not(process_wait(&serve, 200));
    process_signal(&serve, SIGINT);
    cr_assert(process_wait(&serve, PATIENCE_MS));
    cr_expect_eq(process_exit_code(&serve), 1);
}

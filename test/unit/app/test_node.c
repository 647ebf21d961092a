/* A node in the test's own process: what can go wrong at its start; and it leaves nothing on the loop. */
#include "app/node.h"

#include "admin/command.h"
#include "deadline.h"
#include "leak_guard.h"
#include "process.h"
#include "redis_server.h"
#include "test_loop.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The id that the first account would have created. */
#define STORE_ID "00112233445566778899aabbccddeeff"
#define OTHER_ID "ffeeddccbbaa99887766554433221100"
#define MASTER_KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"

static struct fixture {
    uv_loop_t loop;
    char folder[PROCESS_PATH_BYTES];
    char key_path[PROCESS_PATH_BYTES + 16], ready_path[PROCESS_PATH_BYTES + 16], policy_path[PROCESS_PATH_BYTES + 16];
    struct settings settings;
    struct node *node;
    bool is_serving, is_unfit, is_stopped;
    int unfit_code;
} fixture;

static void node_serving(void *arg, struct node *node)
{
    struct fixture *f = arg;

    cr_assert_eq(f->node, node);
    cr_assert_not(f->is_serving);
    f->is_serving = true;
}

static void node_unfit(void *arg, int code)
{
    struct fixture *f = arg;

    f->unfit_code = code;
    f->is_unfit = true;
}

static void node_stopped(void *arg)
{
    struct fixture *f = arg;

    cr_assert_not(f->is_stopped);
    f->is_stopped = true;
}

static void make_node(void)
{
    struct fixture *f = &fixture;
    const struct option_table tables[] = {SETTINGS_STORE, SETTINGS_KEYS, SETTINGS_NODE, SETTINGS_ORIGIN,
                                          SETTINGS_LIMITS};
    const struct node_events events = {node_serving, node_unfit, node_stopped, f};
    char storage[256];
    struct buf why;
    int rest;

    log_configure(LOG_ERROR, LOG_LOGFMT);
    folder_make(f->folder);
    snprintf(f->key_path, sizeof f->key_path, "%.180s/key", f->folder);
    snprintf(f->ready_path, sizeof f->ready_path, "%.180s/ready", f->folder);
    snprintf(f->policy_path, sizeof f->policy_path, "%.180s/policy", f->folder);
    file_write(f->key_path, MASTER_KEY);
    cr_assert_eq(chmod(f->key_path, 0600), 0);
    buf_init_fixed(&why, storage, sizeof storage);
    cr_assert(options_read(tables, sizeof tables / sizeof *tables, &f->settings, 0, NULL, &rest, &why));
    f->settings.redis = "unix:/nonexistent/redis.sock";
    f->settings.master_key_file = f->key_path;
    f->settings.ready_file = f->ready_path;
    f->settings.public_origin = "https://console.test";
    f->settings.listen = f->settings.internal_listen = "127.0.0.1:0";
    cr_assert_eq(uv_loop_init(&f->loop), 0);
    f->node = node_create(&f->loop, &f->settings, &events);
}

static void end_node(void)
{
    folder_remove(fixture.folder);
    leak_guard();
}

TestSuite(node, .init = make_node, .fini = end_node);

static void close_node(void)
{
    node_close(fixture.node, 0);
    cr_assert_not(fixture.is_stopped, "stopping completes later");
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_stopped, PATIENCE_MS));
    cr_assert(test_loop_finish(&fixture.loop));
}

Test(node, listens_while_redis_is_away)
{
    cr_assert_eq(node_open(fixture.node), EXIT_DONE);
    cr_assert_str_neq(node_address(fixture.node), node_internal_address(fixture.node));
    test_loop_for(&fixture.loop, 50);
    cr_assert_not(fixture.is_serving);
    cr_assert_not(fixture.is_unfit);
    cr_assert_neq(access(fixture.ready_path, F_OK), 0);
    close_node();
}

Test(node, serves_once_redis_is_there_and_takes_the_ready_file_away)
{
    struct redis_server redis;

    redis_server_start(&redis, NULL);
    redis_server_tell(&redis, "HSET", "chatelaine:store", "id", STORE_ID, NULL);
    fixture.settings.redis = redis.url;
    cr_assert_eq(node_open(fixture.node), EXIT_DONE);
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_serving, PATIENCE_MS));
    cr_assert_eq(access(fixture.ready_path, F_OK), 0);
    close_node();
    cr_assert_neq(access(fixture.ready_path, F_OK), 0);
    redis_server_stop(&redis);
}

/* What the status line must say, of one partition or of all. */
struct wanted {
    const char *text;
    bool is_of_one;
};

static bool says(void *arg)
{
    const struct wanted *wanted = arg;
    char storage[1024];
    struct buf line;
    struct node_view view = node_view(fixture.node);

    buf_init_fixed(&line, storage, sizeof storage - 1);
    node_view_print(&view, &line);
    storage[line.len] = '\0';
    return strstr(storage, wanted->text) &&
           text_starts_with(buf_text(&line), TEXT("in 1 of 2 partitions: ")) == wanted->is_of_one;
}

static void await_line(const char *text, bool is_of_one)
{
    struct wanted wanted = {text, is_of_one};

    cr_assert(test_loop_until(&fixture.loop, says, &wanted, PATIENCE_MS), "%s", text);
}

Test(node, says_how_many_partitions_have_trouble)
{
    struct redis_server redis;

    redis_server_start(&redis, NULL);
    redis_server_tell(&redis, "HSET", "chatelaine:{0}:store", "id", STORE_ID, "partitions", "2", "partition", "0",
                      NULL);
    redis_server_tell(&redis, "HSET", "chatelaine:{1}:store", "id", STORE_ID, "partitions", "2", "partition", "1",
                      NULL);
    fixture.settings.redis = redis.url;
    fixture.settings.partitions = 2;
    cr_assert_eq(node_open(fixture.node), EXIT_DONE);
    await_line("serves; lease held", false);
    redis_server_tell(&redis, "HSET", "chatelaine:{1}:store", "id", OTHER_ID, NULL);
    await_line("answers 503: ", true);
    redis_server_tell(&redis, "HSET", "chatelaine:{0}:store", "id", OTHER_ID, NULL);
    await_line("answers 503: ", false);
    close_node();
    redis_server_stop(&redis);
}

Test(node, refuses_a_redis_that_may_lose_changes)
{
    struct redis_server redis;

    redis_server_start(&redis, &(struct redis_server_options){.not_durable = true});
    fixture.settings.redis = redis.url;
    cr_assert_eq(node_open(fixture.node), EXIT_DONE);
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_unfit, PATIENCE_MS));
    cr_assert_eq(fixture.unfit_code, EXIT_UNFIT);
    cr_assert_not(fixture.is_serving);
    close_node();
    redis_server_stop(&redis);
}

Test(node, serves_it_when_told_to)
{
    struct redis_server redis;

    redis_server_start(&redis, &(struct redis_server_options){.not_durable = true});
    redis_server_tell(&redis, "HSET", "chatelaine:store", "id", STORE_ID, NULL);
    fixture.settings.redis = redis.url;
    fixture.settings.unsafe_redis = true;
    cr_assert_eq(node_open(fixture.node), EXIT_DONE);
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_serving, PATIENCE_MS));
    cr_assert_not(fixture.is_unfit);
    close_node();
    redis_server_stop(&redis);
}

static void no_origin(void)
{
    fixture.settings.public_origin = NULL;
}
static void bad_origin(void)
{
    fixture.settings.public_origin = "https://console.test/";
}
static void no_key(void)
{
    fixture.settings.master_key_file = NULL;
}
static void open_key(void)
{
    cr_assert_eq(chmod(fixture.key_path, 0644), 0);
}
static void bad_redis(void)
{
    fixture.settings.redis = "http://127.0.0.1";
}
static void absent_policy(void)
{
    fixture.settings.policy_file = "/nonexistent";
}
static void bad_policy(void)
{
    file_write(fixture.policy_path, "{}");
    fixture.settings.policy_file = fixture.policy_path;
}
static void absent_revocation_log(void)
{
    fixture.settings.revocation_log = "/nonexistent/revocations";
}
static void bad_address(void)
{
    fixture.settings.listen = "nowhere";
}
static void bad_internal_address(void)
{
    fixture.settings.internal_listen = "nowhere";
}

/* Each failure leaves the node partly built, at a different point. */
static void expect_refusal(void (*spoil)(void))
{
    spoil();
    cr_assert_eq(node_open(fixture.node), EXIT_USAGE);
    close_node();
}

#define REFUSAL(spoil)         \
    Test(node, stops_##spoil)  \
    {                          \
        expect_refusal(spoil); \
    }
REFUSAL(no_origin)
REFUSAL(bad_origin)
REFUSAL(no_key)
REFUSAL(open_key)
REFUSAL(bad_redis)
REFUSAL(absent_policy)
REFUSAL(bad_policy)
REFUSAL(absent_revocation_log)
REFUSAL(bad_address)
REFUSAL(bad_internal_address)

/* Listens at that port of 127.0.0.1; 0: at any free one. */
static int listen_at(unsigned port, char ret_address[HTTP_ADDRESS_BYTES])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((uint16_t)port);
    cr_assert(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0 &&
              bind(fd, (struct sockaddr *)&address, bytes) == 0 && listen(fd, 1) == 0 &&
              getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    snprintf(ret_address, HTTP_ADDRESS_BYTES, "127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

Test(node, says_when_its_address_is_taken)
{
    static char taken[HTTP_ADDRESS_BYTES];
    int fd = listen_at(0, taken);

    fixture.settings.listen = taken;
    cr_assert_eq(node_open(fixture.node), EXIT_FAILED);
    close_node();
    close(fd);
}

/* Two had bound the address, and the other one serves first. */
Test(node, says_when_its_address_is_taken_meanwhile)
{
    struct redis_server redis;
    char same[HTTP_ADDRESS_BYTES];
    int fd;

    redis_server_start(&redis, NULL);
    redis_server_tell(&redis, "HSET", "chatelaine:store", "id", STORE_ID, NULL);
    fixture.settings.redis = redis.url;
    cr_assert_eq(node_open(fixture.node), EXIT_DONE);
    fd = listen_at((unsigned)strtoul(strchr(node_address(fixture.node), ':') + 1, NULL, 10), same);
    cr_assert_str_eq(same, node_address(fixture.node));
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_unfit, PATIENCE_MS));
    cr_assert_eq(fixture.unfit_code, EXIT_FAILED, "a unit starts such a node again");
    cr_assert_not(fixture.is_serving);
    close_node();
    close(fd);
    redis_server_stop(&redis);
}

Test(node, keeps_its_policy_when_the_new_one_is_bad)
{
    file_write(fixture.policy_path, "{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"read\":\"usage:read\"}]}");
    fixture.settings.policy_file = fixture.policy_path;
    cr_assert_eq(node_open(fixture.node), EXIT_DONE);
    node_reload(fixture.node);
    file_write(fixture.policy_path, "{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"read\":\"no:such\"}]}");
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    node_reload(fixture.node);
    unlink(fixture.policy_path);
    node_reload(fixture.node);
    close_node();
}

Test(node, opens_its_revocation_log_again)
{
    char path[PROCESS_PATH_BYTES + 16];

    snprintf(path, sizeof path, "%.180s/revocations", fixture.folder);
    fixture.settings.revocation_log = path;
    cr_assert_eq(node_open(fixture.node), EXIT_DONE);
    cr_assert_eq(unlink(path), 0);
    node_reload(fixture.node);
    cr_assert_eq(access(path, F_OK), 0);
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    node_reload(fixture.node);
    close_node();
}

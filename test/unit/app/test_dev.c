/* The development mode as its user sees it: the binary, started and ended in every way. */
#include "http_client.h"
#include "deadline.h"
#include "free_port.h"
#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *binary;
static char folder[PROCESS_PATH_BYTES];
static char home[PROCESS_PATH_BYTES + 128];

static void make_folder(void)
{
    binary = getenv("CHATELAINE_BINARY");
    if (!binary)
        test_give_up("CHATELAINE_BINARY is to name the binary");
    setenv("CHATELAINE_REDIS_TIMEOUT_MS", "10000", 1); /* a busy machine's slow Redis must not cause warnings */
    folder_make(folder);
    snprintf(home, sizeof home, "%s/home", folder);
}

static void remove_folder(void)
{
    folder_remove(folder);
    leak_guard();
}

TestSuite(dev, .init = make_folder, .fini = remove_folder, .timeout = TEST_WITHIN_S);

/* flag: one more option, or NULL */
static void start_dev_at(struct process *dev, const char *listen, const char *flag)
{
    const char *const argv[] = {binary,        "dev", "--dir", home, "--listen", listen, "--internal-listen",
                                "127.0.0.1:0", flag,  NULL};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char out[PROCESS_PATH_BYTES];

    snprintf(out, sizeof out, "%.150s/dev.out", folder);
    unlink(out);
    process_start(dev, folder, "dev", argv);
    while (!file_contains(dev->out_path, "Code now")) {
        if (process_wait(dev, 10) || deadline_left_ms(deadline) == 0)
            test_give_up("dev did not come up: %s", file_read(dev->err_path));
    }
}

/* If dev chose the port itself, another test could take it before dev listens there. */
static void start_dev_with(struct process *dev, const char *flag)
{
    char listen[32];

    snprintf(listen, sizeof listen, "127.0.0.1:%u", (unsigned)free_port());
    start_dev_at(dev, listen, flag);
}

static void start_dev(struct process *dev)
{
    start_dev_with(dev, NULL);
}

static void stop_dev(struct process *dev, int signal_number)
{
    process_signal(dev, signal_number);
    cr_assert(process_wait(dev, PATIENCE_MS));
    cr_expect_eq(process_exit_code(dev), 0);
    cr_expect_not(file_contains(dev->err_path, "Sanitizer"));
}

/* Reads what follows the label on its line. */
static void read_line(const struct process *dev, const char *label, char *ret_value, size_t size)
{
    char *out = file_read(dev->out_path);
    const char *at = strstr(out, label);

    cr_assert(at, "%s is not told", label);
    at += strlen(label);
    at += strspn(at, " ");
    snprintf(ret_value, size, "%.*s", (int)strcspn(at, "\n"), at);
    free(out);
}

static uint16_t public_port(const struct process *dev)
{
    char url[64];

    read_line(dev, "Console", url, sizeof url);
    return (uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10); /* stops at the path */
}

/* Signs in as the guide says. Returns the response's status. */
static int sign_in(const struct process *dev)
{
    char password[64], totp_file[PROCESS_PATH_BYTES * 2], json[256];
    struct process totp;
    struct http_answer answer;

    snprintf(totp_file, sizeof totp_file, "%s/totp.uri", home);
    const char *const argv[] = {binary, "totp", "--file", totp_file, NULL};
    cr_assert_eq(process_run(&totp, folder, "totp", argv, NULL, PATIENCE_MS), 0);
    char *code = file_read(totp.out_path);
    read_line(dev, "Password", password, sizeof password);
    snprintf(json, sizeof json, "{\"email\":\"admin@chatelaine.localhost\",\"password\":\"%s\",\"totp\":\"%.6s\"}",
             password, code);
    free(code);
    return http_call(public_port(dev), &(struct http_call){.method = "POST", .target = "/v1/auth/login", .json = json},
                     &answer);
}

Test(dev, makes_a_user_who_can_sign_in_and_finds_him_again)
{
    char first[64], second[64];
    struct process dev;

    start_dev(&dev);
    read_line(&dev, "Password", first, sizeof first);
    cr_expect_eq(sign_in(&dev), 200);
    stop_dev(&dev, SIGINT);

    start_dev(&dev);
    read_line(&dev, "Password", second, sizeof second);
    cr_expect_str_eq(first, second);
    stop_dev(&dev, SIGTERM);
}

/* The addresses that people type lead to where they can sign in. */
Test(dev, redirects_localhost_to_the_printed_origin)
{
    static const struct {
        const char *target, *host;
        const char *location; /* after the origin; NULL: no redirect to it */
    } ROWS[] = {
        {"/", "localhost", "/"},
        {"/console/usage?days=7", "LocalHost", "/console/usage?days=7"},
        {"/console/", "127.0.0.1", NULL},
        {"/console/", "localhost.example.org", NULL},
        {"/docs/errors", "localhost", "/docs/errors"},
        {"/openapi.json", "localhost", NULL},
        {"/v1/whoami", "localhost", NULL},
    };
    struct http_client client;
    struct http_answer answer;
    struct process dev;
    char head[192], expected[128], location[128];

    start_dev_at(&dev, "127.0.0.1:0", NULL);
    uint16_t port = public_port(&dev);
    http_client_connect(&client, port);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        int length = snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: %s:%u\r\n\r\n", ROWS[i].target, ROWS[i].host,
                              (unsigned)port);
        cr_assert(http_client_send(&client, head, (size_t)length));
        cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
        snprintf(expected, sizeof expected, "http://127.0.0.1:%u%s", (unsigned)port,
                 ROWS[i].location ? ROWS[i].location : "");
        bool is_told = http_answer_field(&answer, "Location", location, sizeof location);
        bool is_redirected = answer.status == 302 && is_told && strcmp(location, expected) == 0;
        cr_expect_eq(is_redirected, ROWS[i].location != NULL, "%s of %s: %s", ROWS[i].target, ROWS[i].host,
                     answer.head);
    }
    http_client_close(&client);
    stop_dev(&dev, SIGTERM);
}

Test(dev, runs_once_in_a_folder)
{
    const char *const argv[] = {binary, "dev", "--dir", home, NULL};
    struct process dev, other;

    start_dev(&dev);
    cr_expect_eq(process_run(&other, folder, "other", argv, NULL, PATIENCE_MS), 1);
    cr_expect(file_contains(other.err_path, "Another 'chatelaine dev' runs"));
    stop_dev(&dev, SIGTERM);
}

Test(dev, comes_up_again_after_a_crash)
{
    char first[64], second[64];
    struct process dev;

    start_dev(&dev);
    read_line(&dev, "Password", first, sizeof first);
    process_kill(&dev);
    start_dev(&dev);
    read_line(&dev, "Password", second, sizeof second);
    cr_expect_str_eq(first, second);
    stop_dev(&dev, SIGTERM);
}

Test(dev, gives_new_credentials_where_they_were_lost)
{
    char first[64], second[64], path[PROCESS_PATH_BYTES * 2];
    struct process dev;

    start_dev(&dev);
    read_line(&dev, "Password", first, sizeof first);
    stop_dev(&dev, SIGTERM);
    snprintf(path, sizeof path, "%s/credentials.json", home);
    cr_assert_eq(unlink(path), 0);

    start_dev(&dev);
    read_line(&dev, "Password", second, sizeof second);
    cr_expect_str_neq(first, second);
    cr_expect_eq(sign_in(&dev), 200);
    stop_dev(&dev, SIGTERM);
}

Test(dev, puts_the_socket_elsewhere_where_the_folder_has_a_long_name)
{
    char path[sizeof home + 16];
    struct process dev;

    snprintf(home, sizeof home, "%s/%0100d", folder, 0);
    start_dev(&dev);
    snprintf(path, sizeof path, "%s/guide.sh", home);
    cr_expect(file_contains(path, "REDIS='unix:/tmp/chatelaine-"));
    stop_dev(&dev, SIGTERM);
}

Test(dev, says_that_redis_server_is_missing)
{
    const char *const argv[] = {"env", "PATH=/nonexistent", binary, "dev", "--dir", home, NULL};
    struct process dev;

    cr_expect_eq(process_run(&dev, folder, "dev", argv, NULL, PATIENCE_MS), 1);
    cr_expect(file_contains(dev.err_path, "Neither redis-server nor valkey-server is in PATH; install"));
}

/* Prints only what helps, and how to sign in last, so that it is still on the screen at the end. */
Test(dev, tells_how_to_sign_in_last_and_warns_of_nothing)
{
    static const char *const LAST[] = {"\n  Console ", "\n  Email ", "\n  Password ", "\n  TOTP secret ",
                                       "\n  Code now "};
    struct process dev;

    start_dev(&dev);
    char *out = file_read(dev.out_path), *err = file_read(dev.err_path);
    const char *at = out;
    for (size_t i = 0; i < sizeof LAST / sizeof *LAST; i++) {
        at = strstr(at + (i > 0), LAST[i]);
        cr_assert(at, "%s", LAST[i]);
        cr_expect(i == 0 || strcspn(at, "\n") == 0);
    }
    cr_expect_eq(strcspn(at + 1, "\n") + 3, strlen(at), "the last line, and a blank one: '%s'", at);
    cr_expect_not(strstr(err, "level=info") || strstr(err, "open-files limit"), "%s", err);
    free(out);
    free(err);
    stop_dev(&dev, SIGTERM);
}

/* Runs the guide's commands in a shell. Their output is in ret_shell->out_path. */
static int run_guide(struct process *ret_shell, const char *commands)
{
    char script[sizeof home + 512];
    const char *const argv[] = {"sh", "-c", script, NULL};

    snprintf(script, sizeof script, "exec 2>&1; . '%s/guide.sh'; %s", home, commands);
    return process_run(ret_shell, folder, "guide", argv, NULL, PATIENCE_MS);
}

Test(dev, offers_a_guide_that_stops_at_a_refusal_and_can_be_repeated, .timeout = TEST_WITHIN_S)
{
    struct process dev, shell;

    start_dev(&dev);
    cr_expect_eq(run_guide(&shell, "PASSWORD=wrong; tour"), 1);
    cr_expect(file_contains(shell.out_path, "invalid_login"));
    cr_expect(file_contains(shell.out_path, "Stopped: the last response says why."));
    cr_expect_not(file_contains(shell.out_path, "step_up"));

    cr_expect_eq(run_guide(&shell, "revoke_key"), 1);
    cr_expect(file_contains(shell.out_path, "Run tour first"));

    cr_expect_eq(run_guide(&shell, "rm \"$DIR/totp.last\"; tour && revoke_key"), 0, "%s", file_read(shell.out_path));
    cr_expect(file_contains(shell.out_path, "Reads patients"));
    cr_expect(file_contains(shell.out_path, "\n✓ signed in, created a key, used it"));
    cr_expect(file_contains(shell.out_path, "\n✓ refused by this node, "));
    cr_expect(file_contains(shell.out_path, " ms after the revocation (401 api_key_revoked)\n"));
    cr_expect_not(file_contains(shell.out_path, "curl:"), "%s", file_read(shell.out_path));

    /* A refused sign-in leaves the present session. */
    cr_expect_eq(run_guide(&shell, "cp \"$DIR/cookies\" \"$DIR/before\" && ! (PASSWORD=wrong; sign_in) && "
                                   "cmp \"$DIR/cookies\" \"$DIR/before\" && "
                                   "api GET \"$URL/v1/console/session\" -b \"$DIR/cookies\""),
                 0, "%s", file_read(shell.out_path));

    /* Both codes valid now have been used, so it waits. The clock moves when it sleeps. */
    cr_expect_eq(run_guide(&shell, "date() { cat \"$DIR/clock\"; }; sleep() { echo 300000030 >\"$DIR/clock\"; }; "
                                   "echo 300000000 >\"$DIR/clock\" && echo 10000001 >\"$DIR/totp.last\" && new_code && "
                                   "cat \"$DIR/totp.last\""),
                 0, "%s", file_read(shell.out_path));
    cr_expect(file_contains(shell.out_path, "Waiting up to a minute for a new one"));
    cr_expect(file_contains(shell.out_path, "10000002"));

    /* The next half minute begins before the program looks at its clock: that code is another one's. */
    cr_expect_eq(run_guide(&shell, "date() { cat \"$DIR/clock\"; }; program=$BIN BIN=late; "
                                   "late() { echo 300000120 >\"$DIR/clock\"; \"$program\" \"$@\"; }; "
                                   "echo 300000090 >\"$DIR/clock\" && echo 1 >\"$DIR/totp.last\" && new_code && "
                                   "cat \"$DIR/totp.last\""),
                 0, "%s", file_read(shell.out_path));
    cr_expect(file_contains(shell.out_path, "10000004"), "%s", file_read(shell.out_path));
    stop_dev(&dev, SIGTERM);
}

/* A path is text of others: pasting the line must not run what it says. */
Test(dev, the_lines_to_paste_name_any_folder)
{
    char line[512];
    const char *const paste[] = {"sh", "-c", line, NULL};
    struct process dev, shell;

    snprintf(home, sizeof home, "%s/it's $(touch ran); here", folder);
    start_dev(&dev);
    read_line(&dev, "Terminal", line, sizeof line);
    cr_expect_eq(process_run(&shell, folder, "shell", paste, NULL, PATIENCE_MS), 0, "%s: %s", line,
                 file_read(shell.err_path));
    cr_expect(file_contains(shell.out_path, "Reads patients"));
    read_line(&dev, "QR code", line, sizeof line);
    cr_expect_eq(process_run(&shell, folder, "shell", paste, NULL, PATIENCE_MS), 0, "%s: %s", line,
                 file_read(shell.err_path));
    stop_dev(&dev, SIGTERM);
}

Test(dev, prints_its_guide_to_whoever_asks_while_it_runs)
{
    const char *const argv[] = {binary, "dev", "--dir", home, "--guide", NULL};
    struct process dev, other;

    start_dev(&dev);
    cr_expect_eq(process_run(&other, folder, "other", argv, NULL, PATIENCE_MS), 0);
    cr_expect(file_contains(other.out_path, "\xe2\x96\x88"), "the QR code");
    cr_expect(file_contains(other.out_path, "EMAIL='admin@chatelaine.localhost'"));
    cr_expect(file_contains(other.out_path, "tour() {"));
    stop_dev(&dev, SIGTERM);
}

/* Redis Cluster */

/* What the guide gives to a variable. */
static void read_variable(const char *name, char *ret_value, size_t size)
{
    char path[sizeof home + 16], start[32];

    snprintf(path, sizeof path, "%s/guide.sh", home);
    snprintf(start, sizeof start, "\n%s='", name);
    char *guide = file_read(path);
    const char *at = strstr(guide, start);
    cr_assert(at, "%s", name);
    at += strlen(start);
    snprintf(ret_value, size, "%.*s", (int)strcspn(at, "'"), at);
    free(guide);
}

/* The ports of the servers, from redis-cluster://:password@127.0.0.1:port,… */
static void read_ports(uint16_t ret_ports[3])
{
    char url[256], *at = url;

    read_variable("REDIS", url, sizeof url);
    cr_assert_eq(strncmp(url, "redis-cluster://:", 17), 0, "%s", url);
    for (int i = 0; i < 3; i++) {
        at = strstr(at, "127.0.0.1:");
        cr_assert(at, "%s", url);
        at += strlen("127.0.0.1:");
        ret_ports[i] = (uint16_t)strtoul(at, NULL, 10);
    }
}

/* Returns a socket that listens there; -1: the port is in use. */
static int take_port(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

    cr_assert(fd >= 0);
    cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Whichever ports are free. A node that has ended is none to ask. */
Test(dev, has_a_second_node_that_refuses_what_the_first_revoked, .timeout = TEST_WITHIN_S)
{
    struct process dev, shell;

    start_dev(&dev);
    cr_expect_eq(run_guide(&shell,
                           "tour && { second_node & } && while [ ! -s \"$DIR/second_node\" ]; do sleep 0.1; done; "
                           "revoke_key; code=$?; kill $(sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/' \"$DIR/second_node\") && "
                           "wait $! && [ ! -e \"$DIR/second_node\" ] && exit $code"),
                 0, "%s", file_read(shell.out_path));
    cr_expect(file_contains(shell.out_path, "\n✓ refused by the second node, "), "%s", file_read(shell.out_path));
    cr_expect_not(file_contains(shell.out_path, "open-files"), "%s", file_read(shell.out_path));
    stop_dev(&dev, SIGTERM);
}

Test(dev, serves_from_a_cluster_that_is_the_same_after_a_stop_and_a_crash)
{
    char url[256], password[64], again[256];
    uint16_t ports[3];
    struct process dev, shell;

    start_dev_with(&dev, "--cluster");
    read_variable("REDIS", url, sizeof url);
    read_line(&dev, "Password", password, sizeof password);
    cr_expect_not(file_contains(dev.err_path, "connection refused") || file_contains(dev.err_path, "CLUSTERDOWN"));
    cr_expect_eq(run_guide(&shell, "tour && revoke_key"), 0, "%s", file_read(shell.out_path));
    cr_expect_eq(run_guide(&shell, "CHATELAINE_REDIS=$REDIS \"$BIN\" account list $REDIS_OPTION"), 0);
    cr_expect(file_contains(shell.out_path, "Demo Clinic"), "%s", file_read(shell.out_path));
    read_ports(ports);
    stop_dev(&dev, SIGTERM);
    for (int i = 0; i < 3; i++) {
        int fd = take_port(ports[i]);
        cr_expect_geq(fd, 0, "server %d has not ended", i);
        close(fd);
    }

    start_dev_with(&dev, "--cluster");
    read_variable("REDIS", again, sizeof again);
    cr_expect_str_eq(url, again);
    process_kill(&dev);
    start_dev_with(&dev, "--cluster");
    read_variable("REDIS", again, sizeof again);
    cr_expect_str_eq(url, again);
    read_line(&dev, "Password", again, sizeof again);
    cr_expect_str_eq(password, again, "the store has kept its user");
    stop_dev(&dev, SIGINT);
}

Test(dev, shares_the_slots_of_a_cluster_among_servers_that_ask_for_a_password)
{
    char command[512], url[256];
    uint16_t ports[3];
    struct process dev, shell;

    start_dev_with(&dev, "--cluster");
    read_ports(ports);
    read_variable("REDIS", url, sizeof url);
    const char *password = url + strlen("redis-cluster://:");
    for (int i = 0; i < 3; i++) {
        snprintf(
            command, sizeof command,
            "port=%u; redis-cli -p $port PING | grep NOAUTH && export REDISCLI_AUTH=%.*s && "
            "redis-cli -p $port CLUSTER INFO | grep cluster_slots_ok:16384 && "
            "redis-cli -p $port CLUSTER INFO | grep cluster_size:3 && "
            "[ \"$(redis-cli -p $port DBSIZE)\" -gt 0 ] && redis-cli -p $port CONFIG GET appendfsync | grep always",
            (unsigned)ports[i], (int)strcspn(password, "@"), password);
        cr_expect_eq(run_guide(&shell, command), 0, "%s", file_read(shell.out_path));
    }
    stop_dev(&dev, SIGTERM);
}

/* Runs dev to its end, and expects that it fails with this sentence. */
static void expect_refusal(const char *flag, int code, const char *sentence)
{
    const char *const argv[] = {binary, "dev", "--dir", home, "--listen", "127.0.0.1:0", flag, NULL};
    struct process dev;

    cr_expect_eq(process_run(&dev, folder, "refused", argv, NULL, PATIENCE_MS), code);
    cr_expect(file_contains(dev.err_path, sentence), "%s", file_read(dev.err_path));
}

Test(dev, keeps_a_folder_with_one_redis_from_a_cluster_and_the_reverse)
{
    char path[sizeof home + 16];
    struct process dev;

    start_dev(&dev);
    stop_dev(&dev, SIGTERM);
    expect_refusal("--cluster", 2, "was made without --cluster; leave --cluster out, or choose another folder");
    snprintf(path, sizeof path, "%s/cluster.json", home);
    cr_expect_eq(access(path, F_OK), -1);

    snprintf(home, sizeof home, "%s/other", folder);
    start_dev_with(&dev, "--cluster");
    stop_dev(&dev, SIGTERM);
    expect_refusal(NULL, 2, "was made with --cluster; add --cluster, or choose another folder");
    snprintf(path, sizeof path, "%s/redis.conf", home);
    cr_expect_eq(access(path, F_OK), -1);
}

Test(dev, names_the_port_of_its_cluster_that_another_process_uses)
{
    char sentence[128];
    uint16_t ports[3];
    struct process dev;

    start_dev_with(&dev, "--cluster");
    read_ports(ports);
    stop_dev(&dev, SIGTERM);
    int fd = take_port(ports[2]);
    cr_assert_geq(fd, 0);
    snprintf(sentence, sizeof sentence, "nother process uses port %u of 127.0.0.1", (unsigned)ports[2]);
    expect_refusal("--cluster", 1, sentence);
    close(fd);
    start_dev_with(&dev, "--cluster");
    stop_dev(&dev, SIGTERM);
}

Test(dev, says_that_the_ports_of_its_cluster_are_lost)
{
    char path[sizeof home + 16];
    struct process dev;

    start_dev_with(&dev, "--cluster");
    stop_dev(&dev, SIGTERM);
    snprintf(path, sizeof path, "%s/cluster.json", home);
    file_write(path, "{\"password\":\"x\",\"servers\":[{\"port\":1,\"bus_port\":2}]}");
    expect_refusal("--cluster", 1, "is damaged, so the cluster's ports and password are lost");
}

/* The commands in the README exist. */
Test(dev, has_the_commands_of_the_readme)
{
    static const char *const TYPED[] = {"tour", "second_node", "revoke_key"};
    char path[2 * PROCESS_PATH_BYTES], line[64], function[64];

    snprintf(path, sizeof path, "%s/README.md", getenv("CHATELAINE_SOURCE"));
    char *readme = file_read(path);
    snprintf(path, sizeof path, "%s/src/app/dev_guide.sh", getenv("CHATELAINE_SOURCE"));
    char *commands = file_read(path);
    for (size_t i = 0; i < sizeof TYPED / sizeof *TYPED; i++) {
        snprintf(line, sizeof line, "\n%s", TYPED[i]);
        snprintf(function, sizeof function, "\n%s() {", TYPED[i]);
        cr_expect(strstr(readme, line), "README.md has not %s", TYPED[i]);
        cr_expect(strstr(commands, function), "the guide has not %s", TYPED[i]);
    }
    free(readme);
    free(commands);
}

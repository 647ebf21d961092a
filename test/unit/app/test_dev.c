/* The development mode as its user meets it: the binary, started and ended in every way. */
#include "http_client.h"
#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UP_WITHIN_MS = 20000, DOWN_WITHIN_MS = 15000 };

static const char *binary;
static char folder[PROCESS_PATH_BYTES];
static char home[PROCESS_PATH_BYTES + 128];

static void make_folder(void)
{
    binary = getenv("CHATELAINE_BINARY");
    if (!binary)
        test_give_up("CHATELAINE_BINARY is to name the binary");
    folder_make(folder);
    snprintf(home, sizeof home, "%s/home", folder);
}

static void remove_folder(void)
{
    folder_remove(folder);
    leak_guard();
}

TestSuite(dev, .init = make_folder, .fini = remove_folder, .timeout = 100);

static void start_dev(struct process *dev)
{
    const char *const argv[] = {binary,        "dev", "--dir", home, "--listen", "127.0.0.1:0", "--internal-listen",
                                "127.0.0.1:0", NULL};
    struct deadline deadline = deadline_in(UP_WITHIN_MS);
    char out[PROCESS_PATH_BYTES];

    snprintf(out, sizeof out, "%.150s/dev.out", folder);
    unlink(out);
    process_start(dev, folder, "dev", argv);
    while (!file_contains(dev->out_path, "^C stops all")) {
        if (process_wait(dev, 10) || deadline_left_ms(deadline) == 0)
            test_give_up("dev did not come up: %s", file_read(dev->err_path));
    }
}

static void stop_dev(struct process *dev, int signal_number)
{
    process_signal(dev, signal_number);
    cr_assert(process_wait(dev, DOWN_WITHIN_MS));
    cr_expect_eq(process_exit_code(dev), 0);
    cr_expect_not(file_contains(dev->err_path, "Sanitizer"));
}

/* What stands behind the label up to the end of its line. */
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

    read_line(dev, "Public", url, sizeof url);
    return (uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10);
}

/* Signs in as the guide says; the status of the answer. */
static int sign_in(const struct process *dev)
{
    char password[64], totp_file[PROCESS_PATH_BYTES * 2], json[256];
    struct process totp;
    struct http_answer answer;

    snprintf(totp_file, sizeof totp_file, "%s/totp.uri", home);
    const char *const argv[] = {binary, "totp", "--file", totp_file, NULL};
    cr_assert_eq(process_run(&totp, folder, "totp", argv, NULL, 10000), 0);
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

Test(dev, runs_once_in_a_folder)
{
    const char *const argv[] = {binary, "dev", "--dir", home, NULL};
    struct process dev, other;

    start_dev(&dev);
    cr_expect_eq(process_run(&other, folder, "other", argv, NULL, 10000), 1);
    cr_expect(file_contains(other.err_path, "another 'chatelaine dev' runs"));
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
    char url[256];
    struct process dev;

    snprintf(home, sizeof home, "%s/%0100d", folder, 0);
    start_dev(&dev);
    read_line(&dev, "REDIS=", url, sizeof url);
    cr_expect(strncmp(url, "'unix:/tmp/chatelaine-", 22) == 0, "%s", url);
    stop_dev(&dev, SIGTERM);
}

Test(dev, says_that_redis_server_is_missing)
{
    const char *const argv[] = {"env", "PATH=/nonexistent", binary, "dev", "--dir", home, NULL};
    struct process dev;

    cr_expect_eq(process_run(&dev, folder, "dev", argv, NULL, 10000), 1);
    cr_expect(file_contains(dev.err_path, "no redis-server in PATH; install it"));
}

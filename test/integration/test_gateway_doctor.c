/* 'doctor --gateway' without a gateway: what it says of a node, of a backend that anybody reaches, and of itself. Real
 * gateways: test/gateways/doctor.sh. */
#include "deadline.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

TestSuite(gateway_doctor, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { PATH_BYTES = PROCESS_PATH_BYTES + 32, URL_BYTES = 128, ARGS_MAX = 12 };

static struct fixture fixture;
static char key_path[PATH_BYTES], revoked_path[PATH_BYTES];

static void write_key(char path[PATH_BYTES], const char *name, const char *secret)
{
    char line[FIXTURE_TOKEN_BYTES + 1];

    snprintf(path, PATH_BYTES, "%s/%s", fixture.folder, name);
    snprintf(line, sizeof line, "%s\n", secret);
    file_write(path, line);
    cr_assert_eq(chmod(path, 0600), 0);
}

static void start(size_t nodes, enum key_mode mode)
{
    struct fixture_key key, revoked;

    fixture_start(&fixture, nodes, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, mode, SCOPE_ALL, &key);
    fixture_add_key(&fixture, NULL, KEY_API, mode, SCOPE_ALL, &revoked);
    fixture_revoke_key(&fixture, &revoked);
    write_key(key_path, "test.key", key.secret);
    write_key(revoked_path, "revoked.key", revoked.secret);
}

/* Says nothing of keys, whatever it says. Frees nothing: *ret_out is the caller's. */
static int consult(const char *url, bool with_keys, char **ret_out)
{
    const char *args[ARGS_MAX] = {"doctor", "--gateway", url};
    char *err;
    int code;

    if (with_keys) {
        const char *const more[] = {"--key-file", key_path, "--revoked-key-file", revoked_path};
        memcpy(args + 3, more, sizeof more);
    }
    code = fixture_run(&fixture, args, NULL, ret_out, &err);
    cr_expect_str_empty(err);
    cr_expect_null(strstr(*ret_out, "svc_sk_"), "%s", *ret_out);
    free(err);
    return code;
}

static void expect_line(const char *out, const char *line)
{
    cr_expect_not_null(strstr(out, line), "it lacks \"%s\": %s", line, out);
}

/* Everything that can be seen at a node's own public listener, which tells no backend anything. */
Test(gateway_doctor, says_what_cannot_be_seen)
{
    char url[URL_BYTES], *out;

    start(1, MODE_LIVE);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/v1/whoami", (unsigned)fixture.nodes[0].port);
    cr_expect_eq(consult(url, true, &out), 3);
    expect_line(out, "ok    no-key                       refused by a node\n");
    expect_line(out, "ok    wrong-key                    refused by a node\n");
    expect_line(out, "ok    paths                        ambiguous paths are refused\n");
    expect_line(out, "warn  key                          a live key passes\n");
    expect_line(out, "?     echo                         the backend does not tell what reaches it");
    expect_line(out, "?     forged-identity              cannot be seen from outside");
    expect_line(out, "?     secrets                      cannot be seen from outside");
    expect_line(out, "ok    revoked-key                  refused by a node\n");
    expect_line(out, "ok    two-keys                     refused by a node\n");
    free(out);

    cr_expect_eq(consult(url, false, &out), 3);
    expect_line(out, "?     key                          not asked: give --key-file\n");
    expect_line(out, "?     revoked-key                  not asked: give --key-file\n");
    expect_line(out, "\nNot proven to be fit: 16 checks could not tell, with 0 warnings.\n");
    free(out);
    cr_expect_eq(
        fixture_run(&fixture, (const char *const[]){"doctor", "--gateway", url, "--json", NULL}, NULL, &out, NULL), 3);
    expect_line(out, "{\"fit\":false,\"checks\":[{\"name\":\"gateway\",\"status\":\"ok\",");
    expect_line(out,
                "{\"name\":\"key\",\"status\":\"unproven\",\"detail\":\"not asked: give --key-file\",\"remedy\":null}");
    free(out);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/v1/nothing", (unsigned)fixture.nodes[0].port);
    cr_expect_eq(consult(url, true, &out), 3);
    expect_line(out, "?     key                          GET /v1/nothing with the key is answered 404 not_found");
    expect_line(out, "?     forged-identity              not asked: the key does not pass\n");
    free(out);
    fixture_stop(&fixture);
}

static void start_echo(struct process *echo, char url[URL_BYTES])
{
    const char *const argv[] = {node_binary(), "gateway-echo", "127.0.0.1:0", NULL};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char address[URL_BYTES] = "";

    process_start(echo, fixture.folder, "echo", argv);
    while (!address[0]) {
        char *out = file_read(echo->out_path), *end = strstr(out, ". It tells");

        if (end)
            snprintf(address, sizeof address, "%.*s", (int)(end - out - (int)strlen("Listens on ")),
                     out + strlen("Listens on "));
        free(out);
        cr_assert(deadline_left_ms(deadline) > 0 && poll(NULL, 0, 10) == 0);
    }
    snprintf(url, URL_BYTES, "http://%.64s/v1/patients", address);
}

/* As if the gateway let everything pass. */
Test(gateway_doctor, finds_everything_where_nothing_is_checked)
{
    static const char *const FOUND[] = {
        "fail  no-key                       GET /v1/patients without a key is answered 200\n",
        "fail  wrong-key                    GET /v1/patients with a key that nobody made is answered 200\n",
        "fail  claimed-identity             GET /v1/patients without a key is answered 200\n",
        "fail  unread-upload                the gateway waits for the body of a request without a key\n",
        "fail  paths                        GET //v1/patients without a key is answered 200\n",
        "ok    key                          passes\n",
        "ok    echo                         the backend tells what reaches it\n",
        "fail  tunnels                      Upgrade: h2c reaches the backend, which may open a tunnel\n",
        "fail  identity                     the backend gets X-Auth-Account 0 times",
        "fail  forged-identity              the client's own X-Auth-Account reaches the backend\n",
        "fail  underscores                  the client's own X_Auth_Account reaches the backend\n",
        "fail  forged-users                 the client's own Remote-User reaches the backend\n",
        "fail  steering                     the client's own X-HTTP-Method reaches the backend\n",
        "fail  forged-address               the client's own X-Forwarded-For reaches the backend\n",
        "warn  trailers                     the client's trailer field X-Auth-Account reaches the backend\n",
        "fail  secrets                      the key reaches the backend in Authorization\n",
        "ok    target                       the backend gets the target that was checked\n",
        "fail  revoked-key                  GET /v1/patients with the revoked key is answered 200\n",
        "fail  two-keys                     GET /v1/patients with two keys is answered 200\n",
    };
    struct process echo;
    char url[URL_BYTES], *out;

    start(0, MODE_TEST);
    start_echo(&echo, url);
    cr_expect_eq(consult(url, true, &out), 3);
    for (size_t i = 0; i < sizeof FOUND / sizeof *FOUND; i++)
        expect_line(out, FOUND[i]);
    free(out);
    process_kill(&echo);
    cr_expect_eq(consult(url, true, &out), 3);
    expect_line(out, ": Connection refused\n");
    expect_line(out, "\nNot fit: 1 check failed, with 0 warnings.\n");
    free(out);
    fixture_stop(&fixture);
}

static void expect_usage(const char *const *args, const char *says)
{
    char *err;

    cr_expect_eq(fixture_run(&fixture, args, NULL, NULL, &err), 2, "%s", says);
    cr_expect_not_null(strstr(err, says), "it lacks \"%s\": %s", says, err);
    free(err);
}
#define EXPECT_USAGE(says, ...) expect_usage((const char *const[]){"doctor", "--gateway", __VA_ARGS__, NULL}, says)
#define URL "http://127.0.0.1:1/v1/patients"

Test(gateway_doctor, refuses_what_it_cannot_use)
{
    char *secret;

    start(0, MODE_TEST);
    EXPECT_USAGE("name a path of your backend", "http://127.0.0.1:1");
    EXPECT_USAGE("name a path of your backend", "http://127.0.0.1:1/");
    EXPECT_USAGE("name a path of your backend", "127.0.0.1:1/v1/patients");
    EXPECT_USAGE("name a path of your backend", URL "?key=1");
    EXPECT_USAGE("name a path of your backend", URL " HTTP/1.1");
    EXPECT_USAGE("begin with scheme://host", "http://a:b@127.0.0.1/v1/patients");
    EXPECT_USAGE("begin with scheme://host", "ftp://127.0.0.1/v1/patients");
    EXPECT_USAGE("--gateway-ca needs https://", URL, "--gateway-ca", key_path);
    EXPECT_USAGE("holds no certificate", "https://127.0.0.1:1/v1/patients", "--gateway-ca", key_path);
    EXPECT_USAGE("has no API key", URL, "--key-file", fixture.password_path);
    EXPECT_USAGE("annot open --revoked-key-file /none", URL, "--revoked-key-file", "/none");
    secret = file_read(key_path);
    secret[strcspn(secret, "\n")] = '\0';
    EXPECT_USAGE("not the name of a file", URL, "--key-file", secret);
    free(secret);
    cr_assert_eq(chmod(key_path, 0644), 0);
    EXPECT_USAGE("is refused", URL, "--key-file", key_path);
    fixture_stop(&fixture);
}

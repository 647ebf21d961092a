/* TLS on both listeners: the real binary, real certificates, and clients that go wrong. */
#include "base/mem.h"
#include "cli.h"
#include "fixture.h"
#include "leak_guard.h"
#include "losses.h"
#include "tls_client.h"

#include <criterion/criterion.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HANDSHAKES "chatelaine_tls_handshakes_total"
#define RELOADS "chatelaine_tls_certificate_reloads_total"

enum { PATH_BYTES = PROCESS_PATH_BYTES + 32, ARGS_MAX = 24 };

/* Files in the fixture's folder. */
enum file { ONE_PEM, ONE_KEY, TWO_PEM, TWO_KEY, CA_PEM, FILES };
static const char *const NAMES[FILES] = {"one.pem", "one.key", "two.pem", "two.key", "ca.pem"};

static struct certificate ca, other_ca, one, two, gateway;
static struct fixture fixture;
static char paths[FILES][PATH_BYTES];

static void make_certificates(void)
{
    certificate_make(&ca, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificate_make(&other_ca, &(struct certificate_wish){.name = "Other CA", .is_ca = true});
    certificate_make(&one, &(struct certificate_wish){.name = "one", .names = "DNS:localhost", .issuer = &ca});
    certificate_make(
        &two, &(struct certificate_wish){
                  .name = "two", .names = "DNS:localhost,DNS:two.example", .issuer = &ca, .key = CERTIFICATE_RSA_2048});
    certificate_make(&gateway, &(struct certificate_wish){.name = "gateway", .issuer = &ca});
}

static void write_certificates(void)
{
    const char *const contents[FILES] = {one.full, one.key_pem, two.full, two.key_pem, ca.pem};

    for (size_t i = 0; i < FILES; i++) {
        snprintf(paths[i], PATH_BYTES, "%s/%s", fixture.folder, NAMES[i]);
        certificate_write(paths[i], contents[i]);
    }
}

static void start(void)
{
    make_certificates();
    fixture_start(&fixture, 0, NULL);
    write_certificates();
}

static void finish(void)
{
    struct certificate *all[] = {&ca, &other_ca, &one, &two, &gateway};

    fixture_stop(&fixture);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        certificate_free(all[i]);
    leak_guard();
}

TestSuite(tls, .init = start, .fini = finish, .timeout = TEST_WITHIN_S);

static void add_node(void)
{
    fixture_add_node(&fixture, (const char *const[]){"--tls-cert", paths[ONE_PEM], "--tls-key", paths[ONE_KEY], NULL});
}

static long count(const char *metric, const char *result)
{
    char line[128];

    snprintf(line, sizeof line, "%s{result=\"%s\"}", metric, result);
    return fixture_metric(&fixture, 0, line);
}

static void connect_as(struct http_client *client, size_t node, const struct tls_wish *wish)
{
    cr_assert(tls_client_connect(client, fixture.nodes[node].port, wish), "%s", tls_client_why());
}

static int whoami(struct http_client *client)
{
    struct http_answer answer;

    http_client_call(client, &(struct http_call){.target = "/v1/whoami", .bearer = fixture.manager.secret}, &answer);
    return answer.status;
}

static const struct tls_wish USUAL = {.ca = &ca};

Test(tls, requests_are_answered_over_both_versions)
{
    static const struct tls_wish WISHES[] = {
        {.ca = &ca, .version = 12}, {.ca = &ca, .version = 13}, {.ca = &ca, .protocol = "http/1.1"}};
    struct http_client client;

    add_node();
    for (size_t i = 0; i < 3; i++) {
        connect_as(&client, 0, &WISHES[i]);
        for (int again = 0; again < 3; again++)
            cr_expect_eq(whoami(&client), 200);
        http_client_close(&client);
    }
    cr_expect_eq(count(HANDSHAKES, "full"), 3);
    cr_expect_gt(fixture_metric(&fixture, 0, "chatelaine_tls_certificate_not_after_seconds{listener=\"public\"}"),
                 1700000000);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_tls_certificate_not_after_seconds{listener=\"internal\"}"), 0);
}

Test(tls, a_client_of_another_protocol_is_refused)
{
    struct http_client client;

    add_node();
    cr_expect_not(tls_client_connect(&client, fixture.nodes[0].port, &(struct tls_wish){.ca = &ca, .protocol = "h2"}));
    cr_expect_str_eq(tls_client_why(), "tlsv1 alert no application protocol");
    cr_expect_eq(count(HANDSHAKES, "failed"), 1);
}

Test(tls, plain_http_is_told_so)
{
    struct http_answer answer;

    add_node();
    cr_expect_eq(fixture_call(&fixture, 0, &(struct http_call){.target = "/v1/whoami"}, &answer), 400);
    cr_expect_str_eq(http_answer_code(&answer), "tls_required");
}

Test(tls, the_certificate_is_chosen_by_name)
{
    static const struct tls_wish NAMED = {.ca = &ca, .name = "two.example"};
    char certificates[2 * PATH_BYTES], keys[2 * PATH_BYTES];
    struct http_client client;

    snprintf(certificates, sizeof certificates, "%s,%s", paths[ONE_PEM], paths[TWO_PEM]);
    snprintf(keys, sizeof keys, "%s,%s", paths[ONE_KEY], paths[TWO_KEY]);
    fixture_add_node(&fixture, (const char *const[]){"--tls-cert", certificates, "--tls-key", keys, NULL});
    connect_as(&client, 0, &USUAL);
    cr_expect_str_eq(tls_client_server(&client), "one");
    http_client_close(&client);
    connect_as(&client, 0, &NAMED);
    cr_expect_str_eq(tls_client_server(&client), "two");
    cr_expect_eq(whoami(&client), 200);
    http_client_close(&client);
}

/* Certificates of clients. */

static int ask_internally(const struct tls_wish *wish, const char *target, struct http_answer *ret_answer)
{
    struct http_client client;

    if (!tls_client_connect(&client, fixture.nodes[0].internal_port, wish))
        return 0;
    http_client_call(&client, &(struct http_call){.target = target}, ret_answer);
    http_client_close(&client);
    return ret_answer->status;
}

/* With TLS 1.3, the client learns it only when it reads. */
static void expect_turned_away(const struct tls_wish *wish)
{
    struct http_answer answer;
    struct http_client client;

    if (!tls_client_connect(&client, fixture.nodes[0].internal_port, wish))
        return;
    http_client_send_call(&client, &(struct http_call){.target = "/livez"});
    cr_expect_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_CLOSED);
    http_client_close(&client);
}

static void connect_as_gateway(struct http_client *client, const struct tls_wish *wish)
{
    cr_assert(tls_client_connect(client, fixture.nodes[0].internal_port, wish), "%s", tls_client_why());
}

static void add_mutual_node(void)
{
    fixture_add_node(&fixture, (const char *const[]){"--internal-tls-cert", paths[ONE_PEM], "--internal-tls-key",
                                                     paths[ONE_KEY], "--internal-client-ca", paths[CA_PEM], NULL});
}

Test(tls, gateways_must_show_a_certificate_and_probes_need_none)
{
    static const char *const GUARDED[] = {"/metrics", "/check/auth-request", "/check/ext-authz/v1/whoami", "/",
                                          "/livez/x"};
    static const struct tls_wish GATEWAY = {.ca = &ca, .own = &gateway};
    struct http_answer answer;
    struct certificate stranger;
    struct tls_wish wrong = {.ca = &ca, .own = &stranger};

    certificate_make(&stranger, &(struct certificate_wish){.name = "stranger", .issuer = &other_ca});
    add_mutual_node();
    cr_expect_eq(ask_internally(&USUAL, "/livez", &answer), 200);
    cr_expect_eq(ask_internally(&USUAL, "/readyz", &answer), 200);
    for (size_t i = 0; i < sizeof GUARDED / sizeof *GUARDED; i++) {
        cr_expect_eq(ask_internally(&USUAL, GUARDED[i], &answer), 403, "%s", GUARDED[i]);
        cr_expect_str_eq(http_answer_code(&answer), "client_certificate_required", "%s", GUARDED[i]);
    }
    cr_expect_eq(ask_internally(&GATEWAY, "/check/ext-authz/v1/whoami", &answer), 401);
    cr_expect_eq(ask_internally(&GATEWAY, "/metrics", &answer), 200);
    cr_expect(strstr(answer.body, "chatelaine_refusals_total{code=\"client_certificate_required\"} 5\n"));
    expect_turned_away(&wrong);
    certificate_free(&stranger);
}

/* Of /check/watch; the connection stays open. */
static int watch_as(const struct tls_wish *wish, struct http_client *client)
{
    static const char REQUEST[] = "GET /check/watch?acknowledge=1 HTTP/1.0\r\nHost: t\r\n\r\n";
    struct http_answer answer;

    connect_as_gateway(client, wish);
    cr_assert(http_client_send(client, REQUEST, sizeof REQUEST - 1));
    cr_assert_eq(http_client_read(client, true, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    return answer.status;
}

Test(tls, watchers_are_known_by_the_names_of_their_certificates)
{
    struct certificate second, third;
    const struct tls_wish wishes[] = {{.ca = &ca, .own = &gateway}, {.ca = &ca, .own = &second}};
    const struct tls_wish unnamed = {.ca = &ca, .own = &third};
    struct http_client clients[4], other;
    struct http_answer answer;

    certificate_make(&second, &(struct certificate_wish){.name = "cn", .names = "DNS:second", .issuer = &ca});
    certificate_make(&third, &(struct certificate_wish){.name = "third", .issuer = &ca});
    fixture_add_node(&fixture, (const char *const[]){"--internal-tls-cert", paths[ONE_PEM], "--internal-tls-key",
                                                     paths[ONE_KEY], "--internal-client-ca", paths[CA_PEM],
                                                     "--watchers-max", "4", "--watch-names", "gateway, second", NULL});
    cr_expect_eq(ask_internally(&unnamed, "/check/watch", &answer), 403, "%s", answer.body);
    cr_expect_eq(ask_internally(&unnamed, "/metrics", &answer), 200);
    for (size_t i = 0; i < 4; i++)
        cr_expect_eq(watch_as(&wishes[i / 2], &clients[i]), 200, "%zu: each has half of the places", i);
    cr_expect_eq(watch_as(&wishes[0], &other), 503);
    http_client_close(&other);
    for (size_t i = 0; i < 4; i++)
        http_client_close(&clients[i]);
    certificate_free(&second);
    certificate_free(&third);
}

/* The exit code of `chatelaine ready`. */
static int ask_ready(const char *certificate)
{
    char address[32];
    const char *argv[] = {node_binary(), "ready", "--internal-listen", address, "--internal-tls-cert",
                          certificate,   NULL};
    struct process process;

    snprintf(address, sizeof address, "127.0.0.1:%u", (unsigned)fixture.nodes[0].internal_port);
    return process_run(&process, fixture.folder, "ready", argv, NULL, PATIENCE_MS);
}

Test(tls, ready_expects_the_nodes_own_certificate)
{
    add_mutual_node();
    cr_expect_eq(ask_ready(paths[ONE_PEM]), 0);
    cr_expect_eq(ask_ready(paths[TWO_PEM]), 1);
    cr_expect_eq(ask_ready(paths[CA_PEM]), 1, "it has signed certificates of others too");
    cr_expect_eq(ask_ready(paths[ONE_KEY]), 2);
}

/* What 'doctor --gateway' says first of the node's public listener, by whose certificate it goes. */
static void expect_doctor(const char *host, const char *ca_path, const char *says)
{
    char url[64], *out;
    const char *const args[] = {"doctor", "--gateway", url, ca_path ? "--gateway-ca" : NULL, ca_path, NULL};

    snprintf(url, sizeof url, "https://%s:%u/v1/whoami", host, (unsigned)fixture.nodes[0].port);
    cr_expect_eq(fixture_run(&fixture, args, NULL, &out, NULL), 3);
    cr_expect(strncmp(out, says, strlen(says)) == 0, "not \"%s\": %s", says, out);
    free(out);
}

Test(tls, doctor_verifies_a_gateways_certificate)
{
    add_node();
    expect_doctor("localhost", paths[CA_PEM],
                  "ok    gateway                      answers; its certificate is verified\n"
                  "ok    no-key                       refused by a node\n");
    expect_doctor("127.0.0.1", paths[CA_PEM], "fail  gateway                      127.0.0.1:");
    expect_doctor("localhost", NULL, "fail  gateway                      localhost:");
}

/* Certificates that cannot be used. */

static void expect_unfit(const char *const *more, const char *says)
{
    const char *args[ARGS_MAX] = {"serve", "--public-origin", NODE_ORIGIN, "--listen", "127.0.0.1:0"};
    char *err;

    for (size_t i = 5; i < ARGS_MAX - 1 && *more; i++)
        args[i] = *more++;
    cr_expect_eq(fixture_run(&fixture, args, NULL, NULL, &err), 2);
    cr_expect_not_null(strstr(err, says), "\"%s\" lacks \"%s\"", err, says);
    free(err);
}
#define EXPECT_UNFIT(says, ...) expect_unfit((const char *const[]){__VA_ARGS__, NULL}, says)

Test(tls, what_cannot_be_used_is_refused_at_start)
{

    EXPECT_UNFIT("does not belong to the certificate in", "--tls-cert", paths[ONE_PEM], "--tls-key", paths[TWO_KEY]);
    EXPECT_UNFIT("--tls-key names 0", "--tls-cert", paths[ONE_PEM]);
    EXPECT_UNFIT("cannot open /none", "--tls-cert", "/none", "--tls-key", paths[ONE_KEY]);
    EXPECT_UNFIT("holds no certificate", "--internal-tls-cert", paths[ONE_KEY], "--internal-tls-key", paths[ONE_KEY]);
    certificate_write(paths[TWO_PEM], "");
    EXPECT_UNFIT("two.pem holds no certificate", "--internal-client-ca", paths[TWO_PEM], "--internal-tls-cert",
                 paths[ONE_PEM], "--internal-tls-key", paths[ONE_KEY]);
    EXPECT_UNFIT("--internal-client-ca needs --internal-tls-cert", "--internal-client-ca", paths[CA_PEM]);
    EXPECT_UNFIT("--internal-client-ca needs host:port", "--internal-client-ca", paths[CA_PEM], "--internal-tls-cert",
                 paths[ONE_PEM], "--internal-tls-key", paths[ONE_KEY], "--internal-listen", "unix:/tmp/none");
    EXPECT_UNFIT("--watch-names needs --internal-client-ca", "--watch-names", "gateway", "--internal-tls-cert",
                 paths[ONE_PEM], "--internal-tls-key", paths[ONE_KEY]);
    cr_assert_eq(chmod(paths[ONE_KEY], 0644), 0);
    EXPECT_UNFIT("every user of this machine can read it", "--tls-cert", paths[ONE_PEM], "--tls-key", paths[ONE_KEY]);
}

/* Reloading. */

/* That many at least: the node looks at its files by itself, too. */
static void await_count(const char *metric, const char *result, long wanted)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (count(metric, result) < wanted && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 50);
    cr_assert_geq(count(metric, result), wanted, "%s", result);
}

static void reload(long loaded)
{
    process_signal(&fixture.nodes[0].process, SIGHUP);
    await_count(RELOADS, "ok", loaded);
}

static void check_served(const char *subject)
{
    struct http_client client;

    connect_as(&client, 0, &USUAL);
    cr_assert_str_eq(tls_client_server(&client), subject);
    http_client_close(&client);
}

Test(tls, a_bad_pair_leaves_the_old_one_and_a_good_one_replaces_it)
{
    struct http_client open;
    char *log;

    add_node();
    connect_as(&open, 0, &USUAL);
    certificate_write(paths[ONE_PEM], two.full); /* its key has not come yet */
    process_signal(&fixture.nodes[0].process, SIGHUP);
    await_count(RELOADS, "failed", 1);
    check_served("one");
    log = node_log(&fixture.nodes[0]);
    cr_expect_not_null(strstr(log, "TLS certificates rejected: the old ones stay in use"));
    cr_expect_not_null(strstr(log, "does not belong to the certificate in"));
    free(log);
    certificate_write(paths[ONE_KEY], two.key_pem);
    reload(1);
    check_served("two");
    cr_expect_eq(whoami(&open), 200, "a connection from before goes on");
    http_client_close(&open);
}

static void await_log(const char *words)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    bool is_there = false;

    while (!is_there) {
        char *log = node_log(&fixture.nodes[0]);

        is_there = strstr(log, words);
        cr_assert(is_there || deadline_left_ms(deadline) > 0, "%s in %s", words, log);
        free(log);
        poll(NULL, 0, 50);
    }
}

static const char NOT_VALID[] = "a TLS certificate is not valid now: clients refuse this listener";

static void use_pair(const struct certificate *pair)
{
    certificate_write(paths[ONE_PEM], pair->full);
    certificate_write(paths[ONE_KEY], pair->key_pem);
}

/* An expired certificate of the public listener must not take the gateways' checks down, nor keep a node from starting
 * on the day after. Clients of that listener decide. */
Test(tls, an_expired_certificate_stops_only_its_own_clients)
{
    struct certificate old;
    struct http_client client;
    struct http_answer answer;

    certificate_make(&old, &(struct certificate_wish){
                               .name = "old", .names = "DNS:localhost", .issuer = &ca, .from_days = -9, .to_days = -1});
    use_pair(&old);
    add_node();
    cr_expect_not(tls_client_connect(&client, fixture.nodes[0].port, &USUAL));
    cr_expect(strstr(tls_client_why(), "expired"), "%s", tls_client_why());
    await_log(NOT_VALID);
    http_client_connect(&client, fixture.nodes[0].internal_port);
    http_client_call(&client,
                     &(struct http_call){.target = "/check/ext-authz/v1/whoami", .bearer = fixture.manager.secret},
                     &answer);
    cr_expect_eq(answer.status, 200, "%s", answer.body);
    http_client_close(&client);
    use_pair(&one);
    reload(1);
    check_served("one");
    use_pair(&old);
    process_signal(&fixture.nodes[0].process, SIGHUP);
    await_count(RELOADS, "failed", 1);
    check_served("one");
    certificate_free(&old);
}

/* A certificate's end is told before it comes, by whatever operators look at. */
Test(tls, a_certificate_that_ends_soon_is_told_until_it_is_renewed)
{
    struct certificate ending;
    char says[PATH_BYTES + 128];
    struct cli_run run;

    certificate_make(&ending,
                     &(struct certificate_wish){
                         .name = "ending", .names = "DNS:localhost", .issuer = &ca, .from_days = -9, .to_days = 13});
    use_pair(&ending);
    add_node();
    snprintf(says, sizeof says, ": the certificate of its public listener (%s) expires in 12 d: renew it.",
             paths[ONE_PEM]);
    losses_await_status(&fixture, says);
    await_log(LOSSES[LOSS_PUBLIC_CERTIFICATE].message);
    RUN(&fixture, &run, "doctor", "--json", "--public-origin", NODE_ORIGIN);
    cr_expect(strstr(run.out, "\"name\":\"public-certificate\",\"status\":\"warn\",\"detail\":\"1 of 1 nodes: "), "%s",
              run.out);
    cli_finish(&run);
    use_pair(&one);
    reload(1);
    losses_await_end(&fixture, says);
    certificate_write(paths[ONE_PEM], "");
    process_signal(&fixture.nodes[0].process, SIGHUP);
    snprintf(says, sizeof says, ": changed certificates of its public listener (%s) cannot be used", paths[ONE_PEM]);
    losses_await_status(&fixture, says);
    use_pair(&one);
    losses_await_end(&fixture, says);
    RUN(&fixture, &run, "status");
    cr_expect(strstr(run.out, "\n    certificate of the public listener until 20"), "%s", run.out);
    cli_finish(&run);
    certificate_free(&ending);
}

/* As if the disk was full when it was renewed. */
Test(tls, an_empty_client_ca_leaves_the_old_one)
{
    static const struct tls_wish GATEWAY = {.ca = &ca, .own = &gateway};
    struct http_answer answer;

    add_mutual_node();
    certificate_write(paths[CA_PEM], "");
    process_signal(&fixture.nodes[0].process, SIGHUP);
    await_log("ca.pem holds no certificate: it must be PEM");
    cr_expect_eq(ask_internally(&GATEWAY, "/check/ext-authz/v1/whoami", &answer), 401, "%s", answer.body);
    cr_expect_eq(ask_internally(&GATEWAY, "/metrics", &answer), 200);
    cr_expect(strstr(answer.body, RELOADS "{result=\"ok\"} 0\n"), "%s", answer.body);
}

/* Reads and drops what comes. */
static bool ends(struct http_client *client)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    enum http_client_result result = HTTP_CLIENT_ANSWER;

    while (result == HTTP_CLIENT_ANSWER) {
        client->start = client->end = 0;
        result = client->layer->fill(client, deadline);
    }
    return result == HTTP_CLIENT_CLOSED;
}

Test(tls, another_client_ca_ends_what_the_old_one_has_let_in)
{
    static const struct tls_wish GATEWAY = {.ca = &ca, .own = &gateway};
    struct http_client open, watcher, probe;
    struct http_answer answer;

    add_mutual_node();
    connect_as_gateway(&open, &GATEWAY);
    connect_as_gateway(&watcher, &GATEWAY);
    connect_as_gateway(&probe, &USUAL);
    http_client_call(&open, &(struct http_call){.target = "/check/ext-authz/v1/whoami"}, &answer);
    cr_assert_eq(answer.status, 401);
    http_client_send_call(&watcher, &(struct http_call){.target = "/check/watch"});
    cr_assert_eq(watcher.layer->fill(&watcher, deadline_in(PATIENCE_MS)), HTTP_CLIENT_ANSWER);
    certificate_write(paths[CA_PEM], other_ca.pem);
    process_signal(&fixture.nodes[0].process, SIGHUP);
    cr_expect(ends(&open), "an open connection");
    cr_expect(ends(&watcher), "a watcher");
    http_client_call(&probe, &(struct http_call){.target = "/livez"}, &answer);
    cr_expect_eq(answer.status, 200, "a probe has shown no certificate");
    expect_turned_away(&GATEWAY);
    http_client_close(&open);
    http_client_close(&watcher);
    http_client_close(&probe);
}

/* Without a signal, as certbot and Kubernetes replace files. */
Test(tls, changed_files_are_noticed)
{
    char linked[2][PATH_BYTES], next[PATH_BYTES];

    for (size_t i = 0; i < 2; i++) {
        snprintf(linked[i], PATH_BYTES, "%s/linked.%zu", fixture.folder, i);
        cr_assert_eq(symlink(paths[ONE_PEM + i], linked[i]), 0);
    }
    fixture_add_node(&fixture, (const char *const[]){"--tls-cert", linked[0], "--tls-key", linked[1], NULL});
    check_served("one");
    for (size_t i = 0; i < 2; i++) {
        snprintf(next, sizeof next, "%s/next", fixture.folder);
        cr_assert_eq(symlink(paths[TWO_PEM + i], next), 0);
        cr_assert_eq(rename(next, linked[i]), 0);
    }
    await_count(RELOADS, "ok", 1);
    check_served("two");
}

Test(tls, reloading_under_load_fails_no_request)
{
    enum { ROUNDS = 6, REQUESTS = 15 };
    struct http_client open, fresh;

    add_node();
    connect_as(&open, 0, &USUAL);
    for (int round = 1; round <= ROUNDS; round++) {
        certificate_write(paths[ONE_KEY], round % 2 ? two.key_pem : one.key_pem);
        certificate_write(paths[ONE_PEM], round % 2 ? two.full : one.full);
        process_signal(&fixture.nodes[0].process, SIGHUP);
        for (int i = 0; i < REQUESTS; i++) {
            connect_as(&fresh, 0, &USUAL);
            cr_assert_eq(whoami(&fresh), 200);
            http_client_close(&fresh);
            cr_assert_eq(whoami(&open), 200);
        }
        check_served(round % 2 ? "two" : "one");
    }
    http_client_close(&open);
    cr_expect_eq(count(HANDSHAKES, "failed"), 0);
}

/* Session tickets. */

static void check_resumption(int version, bool resumes)
{
    struct tls_wish wish = {.ca = &ca, .version = version};
    struct http_client client;

    for (int visit = 0; visit < 3; visit++) {
        if (visit == 2) { /* neither does a restart matter */
            node_stop(&fixture.nodes[0]);
            fixture_start_node(&fixture, 0, "again", fixture.redis.url,
                               (const char *const[]){"--tls-cert", paths[ONE_PEM], "--tls-key", paths[ONE_KEY], NULL});
        }
        connect_as(&client, visit == 1 ? 1 : 0, &wish);
        cr_assert_eq(whoami(&client), 200);
        cr_assert_eq(tls_client_is_resumed(&client), resumes && visit > 0, "TLS 1.%d, visit %d", version - 10, visit);
        SSL_SESSION_free(wish.session);
        wish.session = tls_client_session(&client);
        http_client_close(&client);
    }
    SSL_SESSION_free(wish.session);
}

Test(tls, every_node_accepts_the_tickets_of_every_other)
{
    add_node();
    add_node();
    check_resumption(13, true);
    cr_expect_eq(count(HANDSHAKES, "resumed"), 1);
    check_resumption(12, false);
}

/* Many bytes. */

Test(tls, large_answers_arrive_whole)
{
    static const struct http_call DOCUMENT = {.target = "/openapi.json"};
    struct http_answer plain, answer;
    struct http_client client;

    add_node();
    fixture_add_node(&fixture, NULL);
    cr_assert_eq(fixture_call(&fixture, 1, &DOCUMENT, &plain), 200);
    cr_assert_gt(plain.body_len, 64 * 1024);
    connect_as(&client, 0, &USUAL);
    for (int again = 0; again < 5; again++) {
        http_client_call(&client, &DOCUMENT, &answer);
        cr_assert_eq(answer.body_len, plain.body_len);
        cr_assert_eq(memcmp(answer.body, plain.body, plain.body_len), 0);
    }
    http_client_close(&client);
}

/* Keys. */

static void send_create_head(struct http_client *client)
{
    char head[512];
    struct http_answer answer;

    snprintf(head, sizeof head,
             "POST /v1/api_keys HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\n"
             "Content-Type: application/json\r\nContent-Length: 29\r\n\r\n",
             fixture.manager.secret);
    connect_as(client, 0, &USUAL);
    cr_assert(http_client_send(client, head, strlen(head)));
    cr_assert_eq(http_client_read(client, true, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_assert_eq(answer.status, 100, "%s", answer.head);
}

/* How many test keys there are; *ret_active of them are active. */
static int count_keys(int *ret_active)
{
    struct http_call call = {.target = "/v1/api_keys?mode=test&limit=100", .bearer = fixture.manager.secret};
    struct http_answer answer;
    struct http_client client;

    connect_as(&client, 0, &USUAL);
    http_client_call(&client, &call, &answer);
    http_client_close(&client);
    *ret_active = 0;
    for (const char *at = answer.body; (at = strstr(at, "\"revoked_at\":null")) != NULL; at++)
        (*ret_active)++;
    return http_answer_json_count(&answer, "data");
}

Test(tls, a_key_that_was_delivered_stays_though_a_reset_follows)
{
    enum { KEYS = 50 };
    struct http_call create = {.method = "POST",
                               .target = "/v1/api_keys",
                               .bearer = fixture.manager.secret,
                               .json = "{\"name\":\"kept\",\"mode\":\"test\"}"};
    struct http_answer answer;
    struct http_client client;
    int active;

    add_node();
    for (int i = 0; i < KEYS; i++) {
        connect_as(&client, 0, &USUAL);
        http_client_call(&client, &create, &answer);
        cr_assert_eq(answer.status, 201, "%s", answer.body);
        http_client_reset(&client);
    }
    fixture_await_read(&fixture, 0);
    cr_expect_eq(count_keys(&active), KEYS);
    cr_expect_eq(active, KEYS);
}

Test(tls, a_key_whose_client_reset_the_connection_is_revoked)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_client client;
    int active;

    fixture_add_node(&fixture, (const char *const[]){"--tls-cert", paths[ONE_PEM], "--tls-key", paths[ONE_KEY],
                                                     "--redis-timeout-ms", "60000", NULL});
    send_create_head(&client);
    redis_server_freeze(&fixture.redis);
    cr_assert(http_client_send(&client, "{\"name\":\"gone\",\"mode\":\"test\"}", 29));
    fixture_await_read(&fixture, 0);
    http_client_reset(&client);
    fixture_await_read(&fixture, 0);
    redis_server_thaw(&fixture.redis);
    while ((count_keys(&active) < 1 || active > 0) && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 50);
    cr_expect_eq(count_keys(&active), 1);
    cr_expect_eq(active, 0);
}

Test(tls, a_truncated_body_creates_nothing)
{
    struct http_answer answer;
    struct http_client client;
    int active;

    add_node();
    for (int politely = 0; politely < 2; politely++) {
        send_create_head(&client);
        cr_assert(http_client_send(&client, "{\"name\":\"cut\"", 13));
        if (politely)
            tls_client_end(&client);
        http_client_half_close(&client);
        cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
        cr_expect_eq(answer.status, 400);
        http_client_close(&client);
    }
    cr_expect_eq(count_keys(&active), 0);
}

/* Clients that stop in the middle. */

Test(tls, partial_handshakes_keep_nobody_out)
{
    enum { PARTIAL = 300, MOST = 100 };
    struct http_client *partial = mem_alloc(PARTIAL * sizeof *partial), client;
    char most[8];

    snprintf(most, sizeof most, "%d", MOST);
    fixture_add_node(&fixture, (const char *const[]){"--tls-cert", paths[ONE_PEM], "--tls-key", paths[ONE_KEY],
                                                     "--tls-handshakes-max", most, NULL});
    for (size_t i = 0; i < PARTIAL; i++) {
        http_client_connect(&partial[i], fixture.nodes[0].port);
        cr_assert(http_client_send(&partial[i], "\x16\x03\x01\x02\x00\x01", 6));
    }
    connect_as(&client, 0, &USUAL);
    cr_expect_eq(whoami(&client), 200);
    cr_expect_geq(count(HANDSHAKES, "refused"), PARTIAL - MOST);
    for (size_t i = 0; i < PARTIAL; i++)
        http_client_close(&partial[i]);
    free(partial);
    cr_expect_eq(whoami(&client), 200);
    http_client_close(&client);
}

Test(tls, a_slow_handshake_ends)
{
    struct http_client slow, client;

    fixture_add_node(&fixture, (const char *const[]){"--tls-cert", paths[ONE_PEM], "--tls-key", paths[ONE_KEY],
                                                     "--head-timeout-ms", "3000", NULL});
    http_client_connect(&slow, fixture.nodes[0].port);
    cr_assert(http_client_send(&slow, "\x16\x03\x01\x02", 4));
    cr_expect(http_client_ended(&slow, PATIENCE_MS));
    http_client_close(&slow);
    cr_expect_eq(count(HANDSHAKES, "timeout"), 1);
    connect_as(&client, 0, &USUAL);
    cr_expect_eq(whoami(&client), 200);
    http_client_close(&client);
}

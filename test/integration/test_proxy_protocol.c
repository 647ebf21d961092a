/* Nodes behind a balancer that forwards bytes: each connection begins with a PROXY header (version 2). */
#include "base/clock.h"
#include "fixture.h"
#include "leak_guard.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(proxy_protocol, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define LOCAL_HEADER SIGNATURE "\x20\0\0\0"
#define REFUSED_TOTAL "chatelaine_proxy_protocol_refused_total"

enum { FIXED_BYTES = 16, IPV4_BYTES = 12, IPV6_BYTES = 36, HEADER_MAX_BYTES = FIXED_BYTES + IPV6_BYTES };

static const char *const TRUSTED[] = {"--proxy-protocol", "--trusted-proxies", "127.0.0.0/8, 10.0.0.0/8", NULL};

/* A header that comes in bytes, with requests between them, takes a while. */
static const char *const PATIENT[] = {
    "--proxy-protocol", "--trusted-proxies", "127.0.0.0/8, 10.0.0.0/8", "--head-timeout-ms", "600000", NULL};

struct header {
    char bytes[HEADER_MAX_BYTES];
    size_t len;
};

/* source NULL: LOCAL. The destination does not matter. */
static struct header header_from(const char *source)
{
    struct header header = {.bytes = LOCAL_HEADER, .len = FIXED_BYTES};
    bool is_ipv6 = source && strchr(source, ':');
    char addresses = is_ipv6 ? IPV6_BYTES : IPV4_BYTES;

    if (!source)
        return header;
    header.bytes[12] = 0x21;
    header.bytes[13] = is_ipv6 ? 0x21 : 0x11;
    header.bytes[15] = addresses;
    cr_assert_eq(inet_pton(is_ipv6 ? AF_INET6 : AF_INET, source, header.bytes + FIXED_BYTES), 1);
    header.len += (size_t)addresses;
    return header;
}

static void connect_from(struct http_client *client, uint16_t port, const char *source)
{
    struct header header = header_from(source);

    http_client_connect(client, port);
    cr_assert(http_client_send(client, header.bytes, header.len));
}

static int call_from(const struct fixture *fixture, const char *source, const struct http_call *call,
                     struct http_answer *ret_answer)
{
    struct http_client client;

    connect_from(&client, fixture->nodes[0].port, source);
    http_client_call(&client, call, ret_answer);
    http_client_close(&client);
    return ret_answer->status;
}

Test(proxy_protocol, the_client_is_who_the_header_names)
{
    static const struct {
        const char *source, *fields, *client;
    } CASES[] = {
        {"203.0.113.9", "", "203.0.113.9"},
        {"2001:db8::9", "", "2001:db8::9"},
        {"203.0.113.9", "X-Forwarded-For: 198.51.100.1\r\n", "203.0.113.9"},
        {"10.0.0.2", "X-Forwarded-For: 192.0.2.1, 198.51.100.1\r\n", "198.51.100.1"},
        {NULL, "", "127.0.0.1"},
        {NULL, "X-Forwarded-For: 198.51.100.1\r\n", "198.51.100.1"},
    };
    struct http_call create = {
        .method = "POST", .target = "/v1/api_keys", .json = "{\"name\":\"n\",\"mode\":\"live\"}"};
    struct http_call events = {.target = "/v1/console/audit_events?limit=1"};
    struct fixture_session session;
    struct http_answer answer;
    struct fixture fixture;
    char ip[64] = "";

    fixture_start(&fixture, 1, TRUSTED);
    fixture_add_session(&fixture, NULL, false, &session);
    create.bearer = fixture.manager.secret;
    events.cookie = session.token;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        create.fields = CASES[i].fields;
        cr_assert_eq(call_from(&fixture, CASES[i].source, &create, &answer), 201, "%s", answer.body);
        cr_assert_eq(call_from(&fixture, "203.0.113.1", &events, &answer), 200, "%s", answer.body);
        cr_expect(http_answer_json(&answer, "data.0.ip", ip, sizeof ip));
        cr_expect_str_eq(ip, CASES[i].client, "case %zu: %s, not %s", i, ip, CASES[i].client);
    }
    cr_expect_eq(fixture_metric(&fixture, 0, REFUSED_TOTAL "{reason=\"missing\"}"), 0);
    fixture_stop(&fixture);
}

static void print_request(const struct fixture *fixture, char ret_request[256])
{
    snprintf(ret_request, 256, "GET /v1/whoami HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n\r\n",
             fixture->manager.secret);
}

static void expect_answers(struct http_client *client, size_t count)
{
    struct http_answer answer;

    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(http_client_read(client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER, "%zu", i);
        cr_expect_eq(answer.status, 200, "%zu: %s", i, answer.body);
    }
}

Test(proxy_protocol, requests_may_come_with_the_header_and_the_header_in_bytes)
{
    struct header header = header_from("203.0.113.9");
    char request[256], sent[HEADER_MAX_BYTES + 512];
    struct http_client client;
    struct fixture fixture;
    size_t len;

    fixture_start(&fixture, 1, PATIENT);
    print_request(&fixture, request);
    memcpy(sent, header.bytes, header.len);
    len = header.len + (size_t)snprintf(sent + header.len, 512, "%s%s", request, request);
    http_client_connect(&client, fixture.nodes[0].port);
    cr_assert(http_client_send(&client, sent, len));
    expect_answers(&client, 2);
    http_client_close(&client);

    http_client_connect(&client, fixture.nodes[0].port);
    for (size_t i = 0; i < len; i++) {
        cr_assert(http_client_send(&client, sent + i, 1));
        if (i <= header.len)
            fixture_await_read(&fixture, 0);
    }
    expect_answers(&client, 2);
    http_client_close(&client);
    fixture_stop(&fixture);
}

static const struct refused_case {
    const char *what, *bytes;
    size_t len;
    const char *reason;
} REFUSED[] = {
#define SENT(literal) literal, sizeof(literal) - 1
    {"version 1", SENT("PROXY TCP4 203.0.113.9 198.51.100.1 12345 80\r\n"), "version_1"},
    {"no header", SENT("GET /livez HTTP/1.1\r\nHost: t\r\n\r\n"), "missing"},
    {"another command", SENT(SIGNATURE "\x22\0\0\0"), "malformed"},
    {"too long", SENT(SIGNATURE "\x20\0\x10\0"), "too_long"},
#undef SENT
};

static void expect_refused(const struct fixture *fixture, size_t node, const char *reason, long count)
{
    char line[128];

    snprintf(line, sizeof line, REFUSED_TOTAL "{reason=\"%s\"}", reason);
    cr_expect_eq(fixture_metric(fixture, node, line), count, "%s", reason);
}

/* The only one, as the next ones are suppressed for a while. */
static void expect_line(const struct fixture *fixture, size_t node, const char *fields)
{
    static const char MESSAGE[] = "connection closed: it did not begin with a PROXY header from a trusted proxy";
    char *log = node_log(&fixture->nodes[node]);
    const char *at = strstr(log, MESSAGE);

    cr_assert(at, "%s", log);
    cr_expect(strstr(at, fields), "%s", at);
    cr_expect_not(strstr(at + 1, MESSAGE), "%s", at);
    free(log);
}

Test(proxy_protocol, what_does_not_begin_with_a_header_is_closed_and_counted)
{
    struct http_client client;
    struct fixture fixture;

    fixture_start(&fixture, 1, TRUSTED);
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        http_client_connect(&client, fixture.nodes[0].port);
        cr_assert(http_client_send(&client, REFUSED[i].bytes, REFUSED[i].len));
        cr_expect(http_client_ended(&client, PATIENCE_MS), "%s", REFUSED[i].what);
        http_client_close(&client);
        expect_refused(&fixture, 0, REFUSED[i].reason, 1);
    }
    expect_line(&fixture, 0, " peer=127.0.0.1 reason=version_1 suppressed=0");
    fixture_stop(&fixture);
}

Test(proxy_protocol, a_header_from_elsewhere_is_not_believed)
{
    static const char *const ELSEWHERE[] = {"--proxy-protocol", "--trusted-proxies", "10.0.0.0/8", NULL};
    struct http_client client;
    struct fixture fixture;

    fixture_start(&fixture, 1, ELSEWHERE);
    http_client_connect(&client, fixture.nodes[0].port);
    cr_expect(http_client_ended(&client, PATIENCE_MS), "closed at once");
    http_client_close(&client);
    connect_from(&client, fixture.nodes[0].port, "10.0.0.2");
    cr_expect(http_client_ended(&client, PATIENCE_MS));
    http_client_close(&client);
    expect_refused(&fixture, 0, "untrusted", 2);
    expect_line(&fixture, 0, " peer=127.0.0.1 reason=untrusted suppressed=0");
    fixture_stop(&fixture);
}

Test(proxy_protocol, a_header_that_is_cut_ends_with_the_deadline_of_heads)
{
    static const char *const HASTY[] = {
        "--proxy-protocol", "--trusted-proxies", "127.0.0.1", "--head-timeout-ms", "1000", NULL};
    struct header header = header_from("203.0.113.9");
    struct http_client client;
    struct fixture fixture;
    uint64_t began_ns;

    fixture_start(&fixture, 1, HASTY);
    began_ns = clock_boot_ns();
    http_client_connect(&client, fixture.nodes[0].port);
    cr_assert(http_client_send(&client, header.bytes, header.len - 1));
    cr_expect(http_client_ended(&client, PATIENCE_MS));
    cr_expect_geq(clock_boot_ns() - began_ns, 900 * CLOCK_NS_PER_MS, "closed before the deadline");
    http_client_close(&client);
    expect_refused(&fixture, 0, "incomplete", 1);
    fixture_stop(&fixture);
}

Test(proxy_protocol, limits_hold_for_clients_and_not_for_the_balancer)
{
    enum { ENROLMENTS_MAX = 30 };
    static const struct http_call BEGIN = {
        .method = "POST", .target = "/v1/auth/device_authorization", .form = "client_id=desktop-agent"};
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, TRUSTED);
    for (size_t i = 0; i < ENROLMENTS_MAX; i++)
        cr_assert_eq(call_from(&fixture, "203.0.113.9", &BEGIN, &answer), 200, "%zu: %s", i, answer.body);
    cr_expect_eq(call_from(&fixture, "203.0.113.9", &BEGIN, &answer), 400, "%s", answer.body);
    cr_expect(strstr(answer.body, "\"slow_down\""), "%s", answer.body);
    cr_expect_eq(call_from(&fixture, "198.51.100.1", &BEGIN, &answer), 200, "%s", answer.body);
    fixture_stop(&fixture);
}

Test(proxy_protocol, each_listener_has_its_own_setting)
{
    static const char *const INTERNAL[] = {"--internal-proxy-protocol", "--trusted-proxies", "127.0.0.1", NULL};
    struct http_call live = {.target = "/livez"};
    struct http_answer answer;
    struct http_client client;
    struct fixture fixture;

    fixture_start(&fixture, 1, INTERNAL);
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    connect_from(&client, fixture.nodes[0].internal_port, NULL);
    http_client_call(&client, &live, &answer);
    cr_expect_eq(answer.status, 200);
    http_client_close(&client);
    http_client_connect(&client, fixture.nodes[0].internal_port);
    http_client_send_call(&client, &live);
    cr_expect(http_client_ended(&client, PATIENCE_MS));
    http_client_close(&client);
    fixture_stop(&fixture);
}

static const struct start_case {
    const char *args[6], *named;
} UNFIT[] = {
    {{"--proxy-protocol"}, "--proxy-protocol needs --trusted-proxies"},
    {{"--internal-proxy-protocol"}, "--internal-proxy-protocol needs --trusted-proxies"},
    {{"--proxy-protocol", "--trusted-proxies", "127.0.0.1", "--listen", "unix:/tmp/none"},
     "--proxy-protocol needs host:port in --listen"},
    {{"--internal-proxy-protocol", "--trusted-proxies", "127.0.0.1", "--internal-listen", "unix:/tmp/none"},
     "--internal-proxy-protocol needs host:port in --internal-listen"},
};

Test(proxy_protocol, nobody_is_believed_by_oversight)
{
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    for (size_t i = 0; i < sizeof UNFIT / sizeof *UNFIT; i++) {
        const char *args[16] = {"serve",       "--public-origin",   NODE_ORIGIN,  "--listen",
                                "127.0.0.1:0", "--internal-listen", "127.0.0.1:0"};
        char *err;

        memcpy(args + 7, UNFIT[i].args, sizeof UNFIT[i].args);
        cr_expect_eq(fixture_run(&fixture, args, NULL, NULL, &err), 2, "%s: %s", UNFIT[i].named, err);
        cr_expect(strstr(err, UNFIT[i].named), "%s", err);
        free(err);
    }
    fixture_stop(&fixture);
}

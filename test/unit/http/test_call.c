/* A command's call to a peer that answers, or does not. */
#include "http/call.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <unistd.h>

TestSuite(http_call, .fini = leak_guard, .timeout = 120);

enum { MAX_BYTES = 4096, PATIENCE_MS = 60 * 1000, IMPATIENT_MS = 100, WHY_BYTES = 256 };

#define REQUEST TEXT("GET / HTTP/1.1\r\nHost: t\r\n\r\n")

/* Takes one connection, says its words, and closes it, or leaves that to the test. */
struct peer {
    int listener, connection;
    const char *says;
    bool stays;
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct peer *peer = arg;
    char request[MAX_BYTES];

    peer->connection = accept(peer->listener, NULL, NULL);
    if (peer->connection < 0 || read(peer->connection, request, sizeof request) <= 0 ||
        write(peer->connection, peer->says, strlen(peer->says)) < 0)
        return NULL;
    if (!peer->stays)
        (void)shutdown(peer->connection, SHUT_RDWR);
    return NULL;
}

static void peer_start(struct peer *peer, struct http_call_peer *ret_address)
{
    struct sockaddr_in *address = (struct sockaddr_in *)(void *)&ret_address->address;

    *ret_address = (struct http_call_peer){.address_bytes = sizeof *address, .host = ""};
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(peer->listener, (const struct sockaddr *)address, sizeof *address), 0);
    cr_assert_eq(listen(peer->listener, 1), 0);
    cr_assert_eq(getsockname(peer->listener, (struct sockaddr *)address, &ret_address->address_bytes), 0);
    cr_assert_eq(pthread_create(&peer->thread, NULL, serve, peer), 0);
}

static void peer_end(struct peer *peer)
{
    cr_assert_eq(pthread_join(peer->thread, NULL), 0);
    (void)close(peer->connection);
    (void)close(peer->listener);
}

static enum http_call_result make(const struct http_call_peer *to, int64_t patience_ms, unsigned *ret_status,
                                  char ret_why[WHY_BYTES])
{
    struct http_message response;
    struct buf why;
    enum http_call_result result;

    buf_init_fixed(&why, ret_why, WHY_BYTES - 1);
    http_message_init(&response, HTTP_MESSAGE_RESPONSE, MAX_BYTES);
    result = http_call_make(to, REQUEST, patience_ms, &response, &why);
    ret_why[why.len] = '\0';
    *ret_status = response.status;
    http_message_finish(&response);
    return result;
}

static const struct call_case {
    const char *says;
    bool stays;
    int64_t patience_ms;
    enum http_call_result result;
    unsigned status;
    const char *why;
} CASES[] = {
    {"HTTP/1.1 204 No\r\n\r\n", true, PATIENCE_MS, HTTP_CALL_ANSWERED, 204, ""},
    {"HTTP/1.1 200 OK\r\n\r\nall of it", false, PATIENCE_MS, HTTP_CALL_ANSWERED, 200, ""},
    {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", true, PATIENCE_MS,
     HTTP_CALL_ANSWERED, 302, ""},
    {"", false, PATIENCE_MS, HTTP_CALL_FAILED, 0, "the connection was closed"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", false, PATIENCE_MS, HTTP_CALL_FAILED, 200,
     "the connection was closed"},
    {"SSH-2.0-server\r\n", true, PATIENCE_MS, HTTP_CALL_FAILED, 0, "the response is not HTTP"},
    {"", true, IMPATIENT_MS, HTTP_CALL_SILENT, 0, "no response in time"},
};

Test(http_call, says_how_it_ended)
{
    char why[WHY_BYTES];

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct peer peer = {.connection = -1, .says = CASES[i].says, .stays = CASES[i].stays};
        struct http_call_peer to;
        unsigned status;

        peer_start(&peer, &to);
        cr_expect_eq(make(&to, CASES[i].patience_ms, &status, why), CASES[i].result, "case %zu: %s", i, why);
        cr_expect_eq(status, CASES[i].status, "case %zu: %u", i, status);
        cr_expect_str_eq(why, CASES[i].why, "case %zu", i);
        peer_end(&peer);
    }
}

Test(http_call, nobody_listens)
{
    struct peer peer = {.connection = -1, .says = "HTTP/1.1 204 No\r\n\r\n"};
    struct http_call_peer to;
    char why[WHY_BYTES];
    unsigned status;

    peer_start(&peer, &to);
    cr_expect_eq(make(&to, PATIENCE_MS, &status, why), HTTP_CALL_ANSWERED, "%s", why);
    peer_end(&peer);
    cr_expect_eq(make(&to, PATIENCE_MS, &status, why), HTTP_CALL_REFUSED, "%s", why);
    cr_expect_str_eq(why, "Connection refused");
}

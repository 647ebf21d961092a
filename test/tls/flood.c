/* A flood of handshakes: as many as the threads of each kind can make, until the time is over.
 *   full      complete ones, without a request
 *   half      sends the same ClientHello again and again and leaves as soon as the server has answered, which is the
 *             cheapest way to make a server sign
 *   garbage   bytes that are no TLS
 *   stalled   sends half of a ClientHello and waits until the server has had enough */
#include "client.h"
#include "modes.h"

#include "base/clock.h"
#include "base/random.h"

#include <openssl/err.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { HELLO_BYTES = 2048, ANSWER_BYTES = 16384, GARBAGE_BYTES = 512, STACK_BYTES = 256 * 1024 };
static const int RETRY_MS = 1; /* after a refused connection */

enum kind { FULL, HALF, GARBAGE, STALLED, KINDS };

static struct {
    SSL_CTX *context;
    uint16_t port;
    char hello[HELLO_BYTES];
    size_t hello_bytes;
    char garbage[GARBAGE_BYTES];
    atomic_ullong done[KINDS];
    atomic_ullong refused[KINDS]; /* no connection, or closed before the server has said anything */
    atomic_ullong longest_stall_ms;
} flood;

/* No record's type is above 0x7f, so the server need not wait for more. */
static void make_garbage(void)
{
    random_public(flood.garbage, sizeof flood.garbage);
    flood.garbage[0] |= (char)0x80;
}

static void make_hello(void)
{
    SSL *ssl = SSL_new(flood.context);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

    SSL_set_bio(ssl, in, out);
    SSL_set_tlsext_host_name(ssl, "localhost");
    (void)SSL_connect(ssl);
    flood.hello_bytes = (size_t)BIO_read(out, flood.hello, sizeof flood.hello);
    SSL_free(ssl);
    ERR_clear_error();
}

static bool shake_hands(void)
{
    int fd = client_connect(flood.port);
    struct client client = {.fd = fd};
    bool is_done;

    if (fd < 0)
        return false;
    client.ssl = SSL_new(flood.context);
    SSL_set_app_data(client.ssl, &client);
    SSL_set_fd(client.ssl, fd);
    SSL_set_tlsext_host_name(client.ssl, "localhost");
    is_done = SSL_connect(client.ssl) == 1;
    if (is_done)
        client_close(&client); /* in order: a reset would overtake the last part of the handshake */
    else
        client_reset(&client);
    SSL_SESSION_free(client.ticket);
    return is_done;
}

/* Whether the server answered it. */
static bool send_once(const char *bytes, size_t count)
{
    int fd = client_connect(flood.port);
    char answer[ANSWER_BYTES];
    bool is_answered;

    if (fd < 0)
        return false;
    is_answered = send(fd, bytes, count, MSG_NOSIGNAL) > 0 && recv(fd, answer, sizeof answer, 0) > 0;
    client_reset_socket(fd);
    return is_answered;
}

static bool stall(void)
{
    uint64_t began_ns = clock_boot_ns();
    unsigned long long took_ms, longest = atomic_load(&flood.longest_stall_ms);
    bool is_answered = send_once(flood.hello, flood.hello_bytes / 2);

    took_ms = (clock_boot_ns() - began_ns) / CLOCK_NS_PER_MS;
    while (took_ms > longest && !atomic_compare_exchange_weak(&flood.longest_stall_ms, &longest, took_ms))
        continue;
    return is_answered;
}

static bool attempt(enum kind kind)
{
    switch (kind) {
    case FULL:
        return shake_hands();
    case HALF:
        return send_once(flood.hello, flood.hello_bytes);
    case GARBAGE:
        return send_once(flood.garbage, sizeof flood.garbage);
    default:
        return stall();
    }
}

static void *attack(void *arg)
{
    enum kind kind = *(const enum kind *)arg;

    while (!client_stopped) {
        bool is_done = attempt(kind);

        atomic_fetch_add(is_done ? &flood.done[kind] : &flood.refused[kind], 1);
        if (!is_done)
            (void)poll(NULL, 0, RETRY_MS);
    }
    return NULL;
}

static bool begin_threads(enum kind *kind, uint64_t count)
{
    pthread_attr_t attributes;
    pthread_t thread;
    bool is_fine = true;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (uint64_t i = 0; i < count && is_fine; i++)
        is_fine = pthread_create(&thread, &attributes, attack, kind) == 0;
    pthread_attr_destroy(&attributes);
    return is_fine;
}

/* Does not wait for its threads: a stalled one may take as long as the server is patient. */
bool mode_flood(const struct mode_arguments *arguments)
{
    static enum kind kinds[KINDS] = {FULL, HALF, GARBAGE, STALLED};
    static const char *const NAMES[KINDS] = {"full", "half", "garbage", "stalled"};
    uint64_t end_ns = clock_boot_ns() + arguments->numbers[0] * 1000 * CLOCK_NS_PER_MS;

    flood.context = client_context();
    flood.port = arguments->ports[0];
    make_hello();
    make_garbage();
    for (int i = 0; i < KINDS; i++)
        if (!begin_threads(&kinds[i], arguments->numbers[1 + i]))
            return false;
    while (!client_stopped && clock_boot_ns() < end_ns)
        (void)poll(NULL, 0, 50);
    client_stopped = 1;
    for (int i = 0; i < KINDS; i++)
        printf("%s=%llu %s_refused=%llu ", NAMES[i], atomic_load(&flood.done[i]), NAMES[i],
               atomic_load(&flood.refused[i]));
    printf("longest_stall_ms=%llu\n", atomic_load(&flood.longest_stall_ms));
    fflush(stdout);
    _Exit(EXIT_SUCCESS);
}

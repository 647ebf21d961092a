#include "client.h"
#include "modes.h"

#include "base/clock.h"
#include "base/mem.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OK = 200 };

struct reconnects {
    unsigned long long full, resumed, failed;
};

static void reconnect(struct client *client, SSL_CTX *context, uint16_t port, bool resumes, struct reconnects *sum)
{
    SSL_SESSION *ticket = resumes ? client->ticket : NULL;
    bool is_resumed = false, is_fine;

    if (ticket)
        SSL_SESSION_up_ref(ticket);
    is_fine = client_open(client, context, port, ticket);
    if (is_fine) {
        is_resumed = SSL_session_reused(client->ssl) == 1;
        is_fine = client_ask(client, client_request()) == OK;
    }
    if (is_fine && is_resumed)
        sum->resumed++;
    else if (is_fine)
        sum->full++;
    else if (!client_stopped)
        sum->failed++;
    client_close(client);
    SSL_SESSION_free(ticket);
}

static bool reconnect_often(const struct mode_arguments *arguments, bool resumes)
{
    SSL_CTX *context = client_context();
    struct reconnects sum = {0};
    struct client client = {0};
    uint64_t began_ns = clock_boot_ns();

    for (uint64_t i = 0; i < arguments->numbers[0] && !client_stopped; i++)
        reconnect(&client, context, arguments->ports[i % arguments->port_count], resumes, &sum);
    printf("full=%llu resumed=%llu failed=%llu ms=%llu\n", sum.full, sum.resumed, sum.failed,
           (unsigned long long)((clock_boot_ns() - began_ns) / CLOCK_NS_PER_MS));
    SSL_SESSION_free(client.ticket);
    SSL_CTX_free(context);
    return true;
}

bool mode_resume(const struct mode_arguments *arguments)
{
    return reconnect_often(arguments, true);
}

bool mode_full(const struct mode_arguments *arguments)
{
    return reconnect_often(arguments, false);
}

/* After the request only the socket is kept, because ten thousand sessions of OpenSSL would take this program more
 * memory than the node. */
static int open_idle(SSL_CTX *context, uint16_t port)
{
    struct client client = {0};
    int kept = -1;

    if (client_open(&client, context, port, NULL)) {
        if (client_ask(&client, client_request()) == OK)
            kept = dup(client.fd);
        SSL_set_quiet_shutdown(client.ssl, 1);
        SSL_free(client.ssl);
        close(client.fd);
    }
    SSL_SESSION_free(client.ticket);
    return kept;
}

static unsigned count_open(const int *sockets, unsigned count)
{
    unsigned open = 0;

    for (unsigned i = 0; i < count; i++) {
        struct pollfd readable = {.fd = sockets[i], .events = POLLIN};

        open += poll(&readable, 1, 0) == 0; /* whatever is readable is an end, or an alert before it */
    }
    return open;
}

bool mode_idle(const struct mode_arguments *arguments)
{
    uint64_t wanted = arguments->numbers[0];
    SSL_CTX *context = client_context();
    int *sockets = mem_alloc((wanted + 1) * sizeof *sockets);
    unsigned count = 0, failed = 0;

    for (uint64_t i = 0; i < wanted && !client_stopped; i++) {
        int kept = open_idle(context, arguments->ports[0]);

        if (kept >= 0)
            sockets[count++] = kept;
        else
            failed++;
    }
    printf("opened=%u failed=%u\n", count, failed);
    while (!client_stopped)
        (void)poll(NULL, 0, 100);
    printf("still_open=%u\n", count_open(sockets, count));
    free(sockets); /* the end of the program closes them */
    SSL_CTX_free(context);
    return true;
}

#include "client.h"
#include "modes.h"

#include "base/clock.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CONNECTIONS_MAX = 256, OK = 200 };
static const uint64_t NS_PER_S = 1000 * CLOCK_NS_PER_MS;
static const uint64_t NS_PER_US = CLOCK_NS_PER_MS / 1000;

/* One connection and its thread. */
struct checker {
    pthread_t thread;
    SSL_CTX *context;
    uint16_t port;
    const char *request;
    uint64_t begin_ns, step_ns; /* when its first request is due, and the time between two */
    uint64_t count;             /* of requests to send */
    uint32_t *took_us;          /* of those that were answered, in order */
    uint64_t answered, failed;
};

static void wait_until(uint64_t at_ns)
{
    struct timespec at = {.tv_sec = (time_t)(at_ns / NS_PER_S), .tv_nsec = (long)(at_ns % NS_PER_S)};

    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL) != 0 && !client_stopped)
        continue;
}

/* From when the request was due, not from when it was sent: whoever waits behind a slow response waits too. */
static void *check(void *arg)
{
    struct checker *checker = arg;
    struct client client = {0};

    for (uint64_t i = 0; i < checker->count && !client_stopped; i++) {
        uint64_t due_ns = checker->begin_ns + i * checker->step_ns;

        wait_until(due_ns);
        if ((client.ssl || client_open(&client, checker->context, checker->port, NULL)) &&
            client_ask(&client, checker->request) == OK) {
            checker->took_us[checker->answered++] = (uint32_t)((clock_boot_ns() - due_ns) / NS_PER_US);
        } else if (!client_stopped) {
            checker->failed++;
            client_reset(&client);
        }
    }
    client_close(&client);
    SSL_SESSION_free(client.ticket);
    return NULL;
}

static int compare(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

static void print_checks(const struct checker *checkers, uint64_t count)
{
    uint64_t answered = 0, failed = 0;
    uint32_t *all;

    for (uint64_t i = 0; i < count; i++)
        answered += checkers[i].answered, failed += checkers[i].failed;
    all = mem_alloc((answered + 1) * sizeof *all);
    answered = 0;
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t j = 0; j < checkers[i].answered; j++)
            all[answered++] = checkers[i].took_us[j];
    qsort(all, answered, sizeof *all, compare);
    printf("answered=%llu failed=%llu p50_us=%u p99_us=%u max_us=%u\n", (unsigned long long)answered,
           (unsigned long long)failed, all[answered / 2], all[answered * 99 / 100], all[answered ? answered - 1 : 0]);
    free(all);
}

bool mode_checks(const struct mode_arguments *arguments)
{
    static struct checker checkers[CONNECTIONS_MAX];
    uint64_t rate = arguments->numbers[0], connections = arguments->numbers[1], seconds = arguments->numbers[2];
    SSL_CTX *context = client_context();
    uint64_t begin_ns = clock_boot_ns() + NS_PER_S / 2;

    if (connections < 1 || connections > CONNECTIONS_MAX || rate < connections || seconds < 1)
        return false;
    for (uint64_t i = 0; i < connections; i++) {
        struct checker *checker = &checkers[i];

        *checker = (struct checker){.context = context,
                                    .port = arguments->ports[i % arguments->port_count],
                                    .request = client_request(),
                                    .begin_ns = begin_ns + i * NS_PER_S / rate,
                                    .step_ns = connections * NS_PER_S / rate,
                                    .count = rate * seconds / connections};
        checker->took_us = mem_alloc(checker->count * sizeof *checker->took_us);
        if (pthread_create(&checker->thread, NULL, check, checker) != 0)
            return false;
    }
    for (uint64_t i = 0; i < connections; i++)
        pthread_join(checkers[i].thread, NULL);
    print_checks(checkers, connections);
    for (uint64_t i = 0; i < connections; i++)
        free(checkers[i].took_us);
    SSL_CTX_free(context);
    return true;
}

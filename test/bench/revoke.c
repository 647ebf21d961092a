/* bench_revoke PAUSE_MS PORT... : revokes the keys whose ids come on standard input, one after the other, each at a
 * node picked at random of those that listen at the ports, and prints "microseconds status" a line: from the request's
 * first byte to the answer's last. The key that may do so is in the environment as BENCH_BEARER. For scripts/bench. */
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "http_client.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 64, PAUSE_MAX_MS = 60000, ID_LINE_BYTES = 64, REVOKE_TARGET_BYTES = 96, NS_PER_US = 1000 };

static struct http_client nodes[NODES_MAX];

static void revoke(struct http_client *node, const char *id, const char *bearer)
{
    static struct http_answer answer;
    char target[REVOKE_TARGET_BYTES];
    struct http_call call = {.method = "DELETE", .target = target, .bearer = bearer};

    snprintf(target, sizeof target, "/v1/api_keys/%s", id);
    uint64_t began_ns = clock_boot_ns();
    http_client_call(node, &call, &answer);
    printf("%.1f %d\n", (double)(clock_boot_ns() - began_ns) / (double)NS_PER_US, answer.status);
}

int main(int argc, char **argv)
{
    const char *bearer = getenv("BENCH_BEARER");
    uint32_t count = (uint32_t)(argc - 2);
    char id[ID_LINE_BYTES];
    uint64_t pause_ms, port;

    if (!bearer || argc < 3 || count > NODES_MAX || !text_to_u64(text_of(argv[1]), PAUSE_MAX_MS, &pause_ms)) {
        fputs("usage: BENCH_BEARER=secret bench_revoke PAUSE_MS PORT... <ids\n", stderr);
        return EXIT_FAILURE;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!text_to_u64(text_of(argv[2 + i]), UINT16_MAX, &port))
            return EXIT_FAILURE;
        http_client_connect(&nodes[i], (uint16_t)port);
    }
    setvbuf(stdin, NULL, _IONBF, 0); /* what follows the last id that was taken is left to the next one who reads */
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(id, sizeof id, stdin)) {
        id[strcspn(id, "\n")] = '\0';
        revoke(&nodes[random_below(count)], id, bearer);
        if (pause_ms > 0)
            (void)poll(NULL, 0, (int)pause_ms);
    }
    for (uint32_t i = 0; i < count; i++)
        http_client_close(&nodes[i]);
    return EXIT_SUCCESS;
}

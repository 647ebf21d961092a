/* bench_change PAUSE_MS PORT... : makes a change for each line of standard input, one after the other, each at a node
 * picked at random of those that listen at the ports, and prints "microseconds id status" a line: the time from the
 * request's first byte to the answer's last. A line is "ID [BEARER]": revokes that key; "- [BEARER]": creates one. The
 * bearer is the key that may do so; without one it is BENCH_BEARER of the environment. For scripts/bench. */
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "http_client.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 64, PAUSE_MAX_MS = 60000, LINE_BYTES = 192, ID_BYTES = 64, NS_PER_US = 1000 };

static struct http_client nodes[NODES_MAX];

static void change(struct http_client *node, const char *id, const char *bearer)
{
    static struct http_answer answer;
    char target[LINE_BYTES], made[ID_BYTES];
    bool is_creation = strcmp(id, "-") == 0;
    struct http_call call = {.method = is_creation ? "POST" : "DELETE",
                             .target = target,
                             .bearer = bearer,
                             .json = is_creation ? "{\"name\":\"bench\",\"mode\":\"live\"}" : NULL};

    snprintf(target, sizeof target, is_creation ? "/v1/api_keys" : "/v1/api_keys/%s", id);
    uint64_t began_ns = clock_boot_ns();
    http_client_call(node, &call, &answer);
    double took_us = (double)(clock_boot_ns() - began_ns) / (double)NS_PER_US;
    printf("%.1f %s %d\n", took_us, is_creation && http_answer_json(&answer, "id", made, sizeof made) ? made : id,
           answer.status);
}

int main(int argc, char **argv)
{
    uint32_t count = (uint32_t)(argc - 2);
    char line[LINE_BYTES];
    uint64_t pause_ms, port;

    if (argc < 3 || count > NODES_MAX || !text_to_u64(text_of(argv[1]), PAUSE_MAX_MS, &pause_ms)) {
        fputs("usage: bench_change PAUSE_MS PORT... <lines\n", stderr);
        return EXIT_FAILURE;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!text_to_u64(text_of(argv[2 + i]), UINT16_MAX, &port))
            return EXIT_FAILURE;
        http_client_connect(&nodes[i], (uint16_t)port);
    }
    setvbuf(stdin, NULL, _IONBF, 0); /* what follows the last line that was taken is left to the next one who reads */
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        char *bearer = line;
        const char *id = strsep(&bearer, " \n");

        if (bearer)
            bearer[strcspn(bearer, "\n")] = '\0';
        change(&nodes[random_below(count)], id, bearer && bearer[0] ? bearer : getenv("BENCH_BEARER"));
        if (pause_ms > 0)
            (void)poll(NULL, 0, (int)pause_ms);
    }
    for (uint32_t i = 0; i < count; i++)
        http_client_close(&nodes[i]);
    return EXIT_SUCCESS;
}

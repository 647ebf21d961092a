/* bench_ask SOCKET WAY SECONDS CONNECTIONS: asks a node, over its check socket, about the keys that standard input
 * names, for so long. WAY: check (as nginx' auth_request does), verify, or batch: 64 questions at a time. Prints how
 * many questions were answered, each of which has to be a yes. For scripts/bench. */
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { KEY_BYTES = 80, IN_BATCH = 64, QUESTION_BYTES = 256, ANSWER_BYTES = 64 * 1024, CONNECTIONS_MAX = 1024 };
static const uint64_t NS_PER_S = 1000000000;

static char (*keys)[KEY_BYTES];
static size_t key_count, next_key;

static void read_keys(void)
{
    size_t room = 1024;

    keys = mem_alloc(room * sizeof *keys);
    while (fgets(keys[key_count], KEY_BYTES, stdin)) {
        keys[key_count][strcspn(keys[key_count], "\n")] = '\0';
        if (++key_count < room)
            continue;
        room *= 2;
        keys = realloc(keys, room * sizeof *keys);
        CHECK(keys);
    }
    CHECK(key_count > 0);
}

static const char *take_key(void)
{
    return keys[next_key++ % key_count];
}

static void print_question(struct buf *out)
{
    buf_printf(out, "{\"key\":\"%s\",\"method\":\"GET\",\"path\":\"/v1/patients/42\"}", take_key());
}

static void print_post(const char *route, struct text body, struct buf *out)
{
    buf_printf(out,
               "POST /check/%s HTTP/1.1\r\nHost: node\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
               route, body.len);
    buf_append_text(out, body);
}

static void print_check(struct buf *out)
{
    buf_printf(out,
               "GET /check/auth-request HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer %s\r\n"
               "X-Original-Method: GET\r\nX-Original-URI: /v1/patients/42\r\n\r\n",
               take_key());
}

static void print_verify(struct buf *out)
{
    struct buf body = BUF_FIXED(QUESTION_BYTES);

    print_question(&body);
    print_post("verify", buf_text(&body), out);
}

static void print_batch(struct buf *out)
{
    struct buf body = BUF_FIXED(IN_BATCH * QUESTION_BYTES);

    buf_append_str(&body, "{\"checks\":[");
    for (size_t i = 0; i < IN_BATCH; i++) {
        buf_append_str(&body, i > 0 ? "," : "");
        print_question(&body);
    }
    buf_append_str(&body, "]}");
    print_post("batch", buf_text(&body), out);
}

static const struct way {
    const char *name;
    void (*print)(struct buf *out);
    const char *yes; /* stands in an answer once for each question */
    size_t questions;
} WAYS[] = {
    {"check", print_check, "X-Auth-Principal: ", 1},
    {"verify", print_verify, "\"valid\":true", 1},
    {"batch", print_batch, "\"valid\":true", IN_BATCH},
};

static void refuse(const char *what)
{
    fprintf(stderr, "bench_ask: %s\n", what);
    exit(EXIT_FAILURE);
}

static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        refuse("the node cannot be reached");
    return fd;
}

static void ask(int fd, const struct way *way)
{
    struct buf request = BUF_FIXED(IN_BATCH * QUESTION_BYTES + QUESTION_BYTES);
    size_t sent = 0;

    way->print(&request);
    CHECK(!request.failed);
    while (sent < request.len) {
        ssize_t bytes = write(fd, request.ptr + sent, request.len - sent);

        if (bytes <= 0)
            refuse("the node ends the connection");
        sent += (size_t)bytes;
    }
}

static bool is_whole(const char *answer, size_t len)
{
    const char *head_end = strstr(answer, "\r\n\r\n"), *length = strcasestr(answer, "\r\nContent-Length: ");

    if (!head_end || !length)
        return false;
    return len >= (size_t)(head_end + 4 - answer) + strtoul(length + strlen("\r\nContent-Length: "), NULL, 10);
}

static void hear(int fd, const struct way *way)
{
    static char answer[ANSWER_BYTES];
    size_t len = 0, said = 0;

    do {
        ssize_t bytes = read(fd, answer + len, sizeof answer - 1 - len);

        if (bytes <= 0)
            refuse("no whole answer");
        len += (size_t)bytes;
        answer[len] = '\0';
    } while (!is_whole(answer, len));
    for (const char *at = answer; (at = strstr(at, way->yes)) != NULL; at++)
        said++;
    if (said != way->questions)
        refuse(answer);
}

static const struct way *find_way(const char *name)
{
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++)
        if (strcmp(WAYS[i].name, name) == 0)
            return &WAYS[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct way *way = argc == 5 ? find_way(argv[2]) : NULL;
    size_t connections = argc == 5 ? strtoul(argv[4], NULL, 10) : 0, answered = 0;
    int fds[CONNECTIONS_MAX];

    if (!way || connections == 0 || connections > CONNECTIONS_MAX)
        refuse("usage: bench_ask SOCKET check|verify|batch SECONDS CONNECTIONS <KEYS");
    read_keys();
    for (size_t i = 0; i < connections; i++)
        fds[i] = dial(argv[1]);
    for (uint64_t until_ns = clock_boot_ns() + strtoul(argv[3], NULL, 10) * NS_PER_S; clock_boot_ns() < until_ns;) {
        for (size_t i = 0; i < connections; i++)
            ask(fds[i], way);
        for (size_t i = 0; i < connections; i++)
            hear(fds[i], way);
        answered += connections * way->questions;
    }
    printf("%zu\n", answered);
    free(keys);
    return EXIT_SUCCESS;
}

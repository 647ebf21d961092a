/* bench_flood AT_ONCE SECONDS PORT...: revokes the keys whose ids standard input names, so many at once, each over a
 * connection of its own to one of the nodes that listen at the ports, for at most so long. Prints "microseconds id
 * status" a line, and last "elapsed MICROSECONDS". The bearer is BENCH_BEARER of the environment. For scripts/bench. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { AT_ONCE_MAX = 10000, SECONDS_MAX = 600, ID_BYTES = 64, ANSWER_BYTES = 16384, FILES_SPARE = 64 };
static const uint64_t NS_PER_US = 1000, NS_PER_S = 1000000000;

struct caller {
    char id[ID_BYTES];
    uint64_t began_ns;
    char answer[ANSWER_BYTES + 1];
    size_t len;
};

static struct pollfd *sockets; /* fd -1: has ended */
static struct caller *callers;
static size_t under_way;
static uint64_t until_ns;

static void stop(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static int dial(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) != 0)
        stop("connect");
    return fd;
}

/* The next id, or the caller ends. */
static void call(size_t n)
{
    struct caller *caller = &callers[n];
    char request[512];

    caller->len = 0;
    caller->began_ns = clock_boot_ns();
    if (caller->began_ns >= until_ns || !fgets(caller->id, sizeof caller->id, stdin)) {
        close(sockets[n].fd);
        sockets[n].fd = -1;
        under_way--;
        return;
    }
    caller->id[strcspn(caller->id, " \n")] = '\0';
    int len = snprintf(request, sizeof request,
                       "DELETE /v1/api_keys/%s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n", caller->id,
                       getenv("BENCH_BEARER"));
    if (len < 0 || (size_t)len >= sizeof request || send(sockets[n].fd, request, (size_t)len, 0) != len)
        stop("send");
}

static bool is_whole(const struct caller *caller)
{
    const char *head_end = strstr(caller->answer, "\r\n\r\n"),
               *length = strcasestr(caller->answer, "\r\ncontent-length: ");

    return head_end && length && length < head_end &&
           caller->len >=
               (size_t)(head_end + 4 - caller->answer) + strtoul(length + strlen("\r\ncontent-length: "), NULL, 10);
}

static void take(size_t n)
{
    struct caller *caller = &callers[n];
    ssize_t got = recv(sockets[n].fd, caller->answer + caller->len, ANSWER_BYTES - caller->len, 0);

    if (got <= 0)
        stop("recv");
    caller->len += (size_t)got;
    caller->answer[caller->len] = '\0';
    if (!is_whole(caller))
        return;
    printf("%.1f %s %.3s\n", (double)(clock_boot_ns() - caller->began_ns) / (double)NS_PER_US, caller->id,
           caller->answer + strlen("HTTP/1.1 "));
    call(n);
}

static uint64_t number(const char *text, uint64_t most)
{
    uint64_t value;

    if (!text || !text_to_u64(text_of(text), most, &value) || value == 0) {
        fputs("usage: bench_flood AT_ONCE SECONDS PORT... <ids\n", stderr);
        exit(EXIT_FAILURE);
    }
    return value;
}

int main(int argc, char **argv)
{
    size_t count = number(argc > 1 ? argv[1] : NULL, AT_ONCE_MAX), ports = argc > 3 ? (size_t)argc - 3 : 0;
    uint64_t began_ns, seconds = number(argc > 2 ? argv[2] : NULL, SECONDS_MAX);
    const struct rlimit files = {count + FILES_SPARE, count + FILES_SPARE};

    if (ports == 0)
        number(NULL, 0);
    (void)setrlimit(RLIMIT_NOFILE, &files);
    sockets = mem_alloc(count * sizeof *sockets);
    callers = mem_alloc(count * sizeof *callers);
    for (size_t i = 0; i < count; i++)
        sockets[i] = (struct pollfd){dial((uint16_t)number(argv[3 + i % ports], UINT16_MAX)), POLLIN, 0};
    under_way = count;
    began_ns = clock_boot_ns();
    until_ns = began_ns + seconds * NS_PER_S;
    for (size_t i = 0; i < count; i++)
        call(i);
    while (under_way > 0) {
        if (poll(sockets, count, -1) < 0)
            stop("poll");
        for (size_t i = 0; i < count; i++)
            if (sockets[i].fd >= 0 && sockets[i].revents)
                take(i);
    }
    printf("elapsed %.0f\n", (double)(clock_boot_ns() - began_ns) / (double)NS_PER_US);
    return EXIT_SUCCESS;
}

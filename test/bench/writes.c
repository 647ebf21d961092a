/* bench_writes SOCKET NAME: writes that name in the Redis at that Unix socket, by a script as a heartbeat does, waits
 * up to 20 ms for a replica, and begins again, until it is ended. For each write that Redis accepted it prints "sent
 * answered acknowledged" a line: when, in ms since 1970, and by how many replicas. For scripts/bench fence. */
#include "base/clock.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAUSE_MS = 4, REQUEST_BYTES = 512, ANSWER_BYTES = 512 };

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof address.sun_path)
        exit(EXIT_FAILURE);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static size_t print_request(const char *name, char request[REQUEST_BYTES])
{
    static const char SCRIPT[] = "#!lua flags=allow-oom\nredis.call('INCR', KEYS[1]) return 1";
    int len = snprintf(request, REQUEST_BYTES,
                       "*4\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n1\r\n$%zu\r\n%s\r\n"
                       "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$2\r\n20\r\n",
                       strlen(SCRIPT), SCRIPT, strlen(name), name);

    if (len < 0 || len >= REQUEST_BYTES)
        exit(EXIT_FAILURE);
    return (size_t)len;
}

/* Each of the two replies is a line. False: the connection ended. */
static bool read_answers(int fd, char answers[ANSWER_BYTES])
{
    const char *second;
    size_t len = 0;

    do {
        ssize_t got = read(fd, answers + len, ANSWER_BYTES - 1 - len);
        if (got <= 0)
            return false;
        len += (size_t)got;
        answers[len] = '\0';
        second = strchr(answers, '\n');
    } while (!second || !strchr(second + 1, '\n'));
    return true;
}

static bool write_once(int fd, const char *request, size_t len)
{
    char answers[ANSWER_BYTES];
    int64_t sent_ms = clock_wall_ms();

    if (send(fd, request, len, MSG_NOSIGNAL) != (ssize_t)len || !read_answers(fd, answers))
        return false;
    if (answers[0] == ':')
        printf("%lld %lld %ld\n", (long long)sent_ms, (long long)clock_wall_ms(),
               strtol(strchr(answers, '\n') + 2, NULL, 10));
    return true;
}

int main(int argc, char **argv)
{
    char request[REQUEST_BYTES];
    int fd = -1;

    if (argc != 3) {
        fputs("usage: bench_writes SOCKET NAME\n", stderr);
        return EXIT_FAILURE;
    }
    size_t len = print_request(argv[2], request);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (;;) {
        if (fd < 0)
            fd = connect_to(argv[1]);
        if (fd >= 0 && !write_once(fd, request, len)) {
            close(fd);
            fd = -1;
        }
        (void)poll(NULL, 0, PAUSE_MS);
    }
}

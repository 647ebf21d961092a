#include "free_port.h"
#include "process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST = 10000, COUNT = 6384 }; /* as in free-port */

static bool is_free(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_bound = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;

    if (fd >= 0)
        close(fd);
    return is_bound;
}

/* Locked until it is closed. */
static int open_numbers(char ret_path[PROCESS_PATH_BYTES])
{
    const char *base = getenv("TMPDIR");
    int fd;

    snprintf(ret_path, PROCESS_PATH_BYTES, "%.60s/chatelaine-ports.%u", base && *base ? base : "/tmp",
             (unsigned)getuid());
    fd = open(ret_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        test_give_up("%s: %s", ret_path, strerror(errno));
    return fd;
}

/* As an offset from FIRST. It begins somewhere, for other users may test, too. */
static unsigned read_last(int fd)
{
    char text[16] = "";
    unsigned long last;
    uint16_t start;

    if (pread(fd, text, sizeof text - 1, 0) < 0 || getrandom(&start, sizeof start, 0) != sizeof start)
        test_give_up("no port: %s", strerror(errno));
    last = strtoul(text, NULL, 10);
    return last >= FIRST && last < FIRST + COUNT ? (unsigned)last - FIRST : start % COUNT;
}

uint16_t free_port(void)
{
    char path[PROCESS_PATH_BYTES];
    int fd = open_numbers(path);
    unsigned offset = read_last(fd), tries = 0;

    do {
        if (++tries > COUNT)
            test_give_up("each of %d ports is taken", (int)COUNT);
        offset = (offset + 1) % COUNT;
    } while (!is_free((uint16_t)(FIRST + offset)));
    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0 || dprintf(fd, "%u\n", FIRST + offset) < 0)
        test_give_up("%s: %s", path, strerror(errno));
    close(fd);
    return (uint16_t)(FIRST + offset);
}

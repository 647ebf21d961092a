#include "netns.h"
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Names begin with this and the process id of their run, so that a later run can tell what is left over. */
#define PREFIX "chatelaine-t"

enum { COUNT_MAX = 8, COMMAND_WITHIN_MS = 10000, ARGS_MAX = 24 };

struct netns {
    unsigned count;
    int root; /* the namespace to come back to */
    int fds[COUNT_MAX];
    char names[COUNT_MAX][32];
    char outer[COUNT_MAX][IFNAMSIZ], inner[COUNT_MAX][IFNAMSIZ];
    char addresses[COUNT_MAX][20];
    char folder[PROCESS_PATH_BYTES];
};

/* Runs `ip` with the words of a line. */
__attribute__((format(printf, 2, 3))) static bool ip(const char *folder, const char *format, ...)
{
    char line[256], *words[ARGS_MAX], *rest = line;
    const char *argv[ARGS_MAX + 2] = {"ip"};
    struct process process;
    size_t argc = 1;
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    while (argc < ARGS_MAX && (words[argc] = strsep(&rest, " ")) != NULL) {
        argv[argc] = words[argc];
        argc++;
    }
    return process_run(&process, folder, "ip", argv, NULL, COMMAND_WITHIN_MS) == 0;
}

/* Namespaces of runs that no longer run; their links go with them. */
static void remove_leftovers(const char *folder)
{
    DIR *names = opendir("/var/run/netns");
    struct dirent *entry;

    while (names && (entry = readdir(names)) != NULL) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        pid_t pid = (pid_t)strtol(entry->d_name + strlen(PREFIX), NULL, 10);
        if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
            ip(folder, "netns delete %s", entry->d_name);
    }
    if (names)
        closedir(names);
}

/* 10.213.x.y, four addresses a node, x from the process id: runs at the same time seldom meet. */
static bool add_one(struct netns *netns, unsigned i)
{
    unsigned pid = (unsigned)getpid(), x = pid % 256, y = i * 4;
    char path[64];

    snprintf(netns->names[i], sizeof netns->names[i], PREFIX "%u-%u", pid, i);
    snprintf(netns->outer[i], sizeof netns->outer[i], "ct%uo%u", pid % 1000000, i % 100);
    snprintf(netns->inner[i], sizeof netns->inner[i], "ct%ui%u", pid % 1000000, i % 100);
    snprintf(netns->addresses[i], sizeof netns->addresses[i], "10.213.%u.%u", x, y + 1);
    if (!ip(netns->folder, "netns add %s", netns->names[i]))
        return false;
    netns->count = i + 1;
    snprintf(path, sizeof path, "/var/run/netns/%s", netns->names[i]);
    netns->fds[i] = open(path, O_RDONLY | O_CLOEXEC);
    return netns->fds[i] >= 0 &&
           ip(netns->folder, "link add %s type veth peer name %s netns %s", netns->outer[i], netns->inner[i],
              netns->names[i]) &&
           ip(netns->folder, "addr add 10.213.%u.%u/30 dev %s", x, y + 1, netns->outer[i]) &&
           ip(netns->folder, "link set %s up", netns->outer[i]) &&
           ip(netns->folder, "-n %s addr add 10.213.%u.%u/30 dev %s", netns->names[i], x, y + 2, netns->inner[i]) &&
           ip(netns->folder, "-n %s link set %s up", netns->names[i], netns->inner[i]) &&
           ip(netns->folder, "-n %s link set lo up", netns->names[i]);
}

struct netns *netns_create(const char *folder, unsigned count)
{
    struct netns *netns = calloc(1, sizeof *netns);
    bool is_good = geteuid() == 0 && count <= COUNT_MAX;

    if (!netns)
        abort();
    snprintf(netns->folder, sizeof netns->folder, "%s", folder);
    netns->root = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (is_good)
        remove_leftovers(folder);
    for (unsigned i = 0; is_good && i < count; i++)
        is_good = add_one(netns, i);
    if (is_good)
        return netns;
    netns_destroy(netns);
    fprintf(stderr, "no network namespaces (they need root, iproute2 and veth): partitions by the proxy only\n");
    return NULL;
}

void netns_destroy(struct netns *netns)
{
    if (!netns)
        return;
    for (unsigned i = 0; i < netns->count; i++) {
        close(netns->fds[i]);
        ip(netns->folder, "link delete %s", netns->outer[i]);
        ip(netns->folder, "netns delete %s", netns->names[i]);
    }
    close(netns->root);
    free(netns);
}

void netns_enter(const struct netns *netns, unsigned node)
{
    if (netns && setns(netns->fds[node], CLONE_NEWNET) != 0)
        test_give_up("setns: %s", strerror(errno));
}

void netns_leave(const struct netns *netns)
{
    if (netns && setns(netns->root, CLONE_NEWNET) != 0)
        test_give_up("setns: %s", strerror(errno));
}

const char *netns_address(const struct netns *netns, unsigned node)
{
    return netns->addresses[node];
}

void netns_set_link(const struct netns *netns, unsigned node, bool up)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", netns->outer[node]);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) != 0)
        test_give_up("the link of node %u: %s", node, strerror(errno));
    request.ifr_flags = (short)(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    if (ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        test_give_up("the link of node %u: %s", node, strerror(errno));
    close(fd);
}

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

enum { COUNT_MAX = 12, COMMAND_WITHIN_MS = 10000, ARGS_MAX = 24 };

struct netns {
    unsigned count;
    int root; /* the namespace to come back to */
    int hub;  /* the namespace with the bridge; -1: none */
    char hub_name[32], root_end[IFNAMSIZ];
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

static int open_namespace(const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/var/run/netns/%s", name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* 10.213.x.y, four addresses a node, x from the process id: runs at the same time seldom meet. */
static bool add_one(struct netns *netns, unsigned i)
{
    unsigned pid = (unsigned)getpid(), x = pid % 256, y = i * 4;

    snprintf(netns->names[i], sizeof netns->names[i], PREFIX "%u-%u", pid, i);
    snprintf(netns->outer[i], sizeof netns->outer[i], "ct%uo%u", pid % 1000000, i % 100);
    snprintf(netns->inner[i], sizeof netns->inner[i], "ct%ui%u", pid % 1000000, i % 100);
    snprintf(netns->addresses[i], sizeof netns->addresses[i], "10.213.%u.%u", x, y + 1);
    if (!ip(netns->folder, "netns add %s", netns->names[i]))
        return false;
    netns->count = i + 1;
    netns->fds[i] = open_namespace(netns->names[i]);
    return netns->fds[i] >= 0 &&
           ip(netns->folder, "link add %s type veth peer name %s netns %s", netns->outer[i], netns->inner[i],
              netns->names[i]) &&
           ip(netns->folder, "addr add 10.213.%u.%u/30 dev %s", x, y + 1, netns->outer[i]) &&
           ip(netns->folder, "link set %s up", netns->outer[i]) &&
           ip(netns->folder, "-n %s addr add 10.213.%u.%u/30 dev %s", netns->names[i], x, y + 2, netns->inner[i]) &&
           ip(netns->folder, "-n %s link set %s up", netns->names[i], netns->inner[i]) &&
           ip(netns->folder, "-n %s link set lo up", netns->names[i]);
}

/* 10.214.x.0/24, its first address for the root namespace. */
static bool add_hub(struct netns *netns)
{
    unsigned pid = (unsigned)getpid();

    snprintf(netns->hub_name, sizeof netns->hub_name, PREFIX "%u-hub", pid);
    snprintf(netns->root_end, sizeof netns->root_end, "ct%ur", pid % 1000000);
    if (!ip(netns->folder, "netns add %s", netns->hub_name))
        return false;
    netns->hub = open_namespace(netns->hub_name);
    return netns->hub >= 0 && ip(netns->folder, "-n %s link add bridge type bridge", netns->hub_name) &&
           ip(netns->folder, "-n %s link set bridge up", netns->hub_name) &&
           ip(netns->folder, "link add %s type veth peer name root netns %s", netns->root_end, netns->hub_name) &&
           ip(netns->folder, "-n %s link set root master bridge up", netns->hub_name) &&
           ip(netns->folder, "addr add 10.214.%u.1/24 dev %s", pid % 256, netns->root_end) &&
           ip(netns->folder, "link set %s up", netns->root_end);
}

/* A packet from an address without a route back is dropped: so netns_set_parted() needs one side alone. */
static bool drop_unanswerable(const struct netns *netns, unsigned i)
{
    static const char PATH[] = "/proc/sys/net/ipv4/conf/all/rp_filter";
    bool is_written;
    FILE *file;

    netns_enter(netns, i);
    file = fopen(PATH, "we");
    is_written = file && fputs("1", file) >= 0;
    if (file && fclose(file) != 0)
        is_written = false;
    netns_leave(netns);
    return is_written;
}

static bool add_bridged(struct netns *netns, unsigned i)
{
    unsigned pid = (unsigned)getpid();
    const char *name = netns->names[i], *inner = netns->inner[i], *outer = netns->outer[i];

    snprintf(netns->names[i], sizeof netns->names[i], PREFIX "%u-%u", pid, i);
    snprintf(netns->outer[i], sizeof netns->outer[i], "o%u", i % 100);
    snprintf(netns->inner[i], sizeof netns->inner[i], "i%u", i % 100);
    snprintf(netns->addresses[i], sizeof netns->addresses[i], "10.214.%u.%u", pid % 256, i + 2);
    if (!ip(netns->folder, "netns add %s", name))
        return false;
    netns->count = i + 1;
    netns->fds[i] = open_namespace(name);
    return netns->fds[i] >= 0 &&
           ip(netns->folder, "-n %s link add %s type veth peer name %s netns %s", netns->hub_name, outer, inner,
              name) &&
           ip(netns->folder, "-n %s link set %s master bridge up", netns->hub_name, outer) &&
           ip(netns->folder, "-n %s addr add %s/24 dev %s", name, netns->addresses[i], inner) &&
           ip(netns->folder, "-n %s link set %s up", name, inner) && ip(netns->folder, "-n %s link set lo up", name) &&
           drop_unanswerable(netns, i);
}

static struct netns *create(const char *folder, unsigned count, bool is_bridged)
{
    struct netns *netns = calloc(1, sizeof *netns);
    bool is_good = geteuid() == 0 && count <= COUNT_MAX;

    if (!netns)
        abort();
    snprintf(netns->folder, sizeof netns->folder, "%s", folder);
    netns->root = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    netns->hub = -1;
    if (is_good)
        remove_leftovers(folder);
    if (is_good && is_bridged)
        is_good = add_hub(netns);
    for (unsigned i = 0; is_good && i < count; i++)
        is_good = is_bridged ? add_bridged(netns, i) : add_one(netns, i);
    if (is_good)
        return netns;
    netns_destroy(netns);
    fprintf(stderr, "no network namespaces (they need root, iproute2 and veth): partitions by the proxy only\n");
    return NULL;
}

struct netns *netns_create(const char *folder, unsigned count)
{
    return create(folder, count, false);
}

struct netns *netns_create_bridged(const char *folder, unsigned count)
{
    return create(folder, count, true);
}

/* Its links go with it. */
static void remove_hub(struct netns *netns)
{
    if (netns->hub_name[0] == '\0')
        return;
    if (netns->hub >= 0)
        close(netns->hub);
    ip(netns->folder, "netns delete %s", netns->hub_name);
    ip(netns->folder, "link delete %s", netns->root_end);
}

void netns_destroy(struct netns *netns)
{
    if (!netns)
        return;
    for (unsigned i = 0; i < netns->count; i++) {
        close(netns->fds[i]);
        if (netns->hub < 0)
            ip(netns->folder, "link delete %s", netns->outer[i]);
        ip(netns->folder, "netns delete %s", netns->names[i]);
    }
    remove_hub(netns);
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

/* The socket stays in the namespace that the link is in. */
static int open_control(const struct netns *netns)
{
    if (netns->hub >= 0 && setns(netns->hub, CLONE_NEWNET) != 0)
        test_give_up("setns: %s", strerror(errno));
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    netns_leave(netns);
    return fd;
}

void netns_set_parted(const struct netns *netns, unsigned node, unsigned other, bool is_parted)
{
    if (!ip(netns->folder, "-n %s route %s blackhole %s/32", netns->names[node], is_parted ? "add" : "del",
            netns->addresses[other]))
        test_give_up("the route from %u to %u", node, other);
}

void netns_set_link(const struct netns *netns, unsigned node, bool up)
{
    struct ifreq request = {0};
    int fd = open_control(netns);

    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", netns->outer[node]);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) != 0)
        test_give_up("the link of node %u: %s", node, strerror(errno));
    request.ifr_flags = (short)(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    if (ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        test_give_up("the link of node %u: %s", node, strerror(errno));
    close(fd);
}

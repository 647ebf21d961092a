#include "redis_program.h"
#include "base/check.h"
#include "support/process.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { BACKLOG = 511, PATH_BYTES = 256 };

static const char *value_of(const char *const *argv, const char *name, const char *otherwise)
{
    for (; *argv; argv++)
        if (strcmp(*argv, name) == 0)
            return argv[1];
    return otherwise;
}

static bool has(const char *const *argv, const char *name)
{
    while (*argv && strcmp(*argv, name) != 0)
        argv++;
    return *argv != NULL;
}

static int listen_at(const void *address, socklen_t len)
{
    const struct sockaddr *at = address;
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, at, len) != 0 || listen(fd, BACKLOG) != 0)
        test_give_up("a simulated Redis cannot listen: %s", strerror(errno));
    return fd;
}

static size_t open_listeners(const char *const *argv, int ret_fds[SIM_SERVER_LISTENERS])
{
    struct sockaddr_un file = {.sun_family = AF_UNIX};
    struct sockaddr_in port = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)strtoul(value_of(argv, "--port", "0"), NULL, 10))};

    snprintf(file.sun_path, sizeof file.sun_path, "%s", value_of(argv, "--unixsocket", ""));
    ret_fds[0] = listen_at(&file, sizeof file);
    if (port.sin_port == 0)
        return 1;
    CHECK(inet_pton(AF_INET, value_of(argv, "--bind", ""), &port.sin_addr) == 1);
    ret_fds[1] = listen_at(&port, sizeof port);
    return 2;
}

static const char *file_in(const char *folder, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%s/appendonlydir", folder);
    mkdir(ret_path, 0700);
    snprintf(ret_path, PATH_BYTES, "%s/appendonlydir/appendonly.aof.1.incr.aof", folder);
    return ret_path;
}

struct sim_server *redis_program_start(const char *const *argv)
{
    static const char *const LACKING[] = {"--tls-port", "--cluster-enabled", "--sentinel", "--key-load-delay",
                                          "--replicaof"};
    static const char *const SETTINGS[] = {"requirepass", "min-replicas-to-write", "min-replicas-max-lag"};
    const bool is_durable = strcmp(value_of(argv, "--appendonly", "no"), "yes") == 0;
    int listeners[SIM_SERVER_LISTENERS];
    char path[PATH_BYTES], option[64];
    struct sim_server *server;

    for (size_t i = 0; i < sizeof LACKING / sizeof *LACKING; i++)
        if (has(argv, LACKING[i]))
            test_give_up("%s is not simulated: this test needs a real Redis", LACKING[i]);
    server = sim_server_start_here(listeners, open_listeners(argv, listeners),
                                   is_durable ? file_in(value_of(argv, "--dir", "."), path) : NULL);
    sim_server_configure(server, "appendonly", is_durable ? "yes" : "no");
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        snprintf(option, sizeof option, "--%s", SETTINGS[i]);
        if (value_of(argv, option, NULL))
            sim_server_configure(server, SETTINGS[i], value_of(argv, option, NULL));
    }
    return server;
}

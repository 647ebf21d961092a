#include "dev_redis.h"

#include "app/dev.h"
#include "base/check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { START_WITHIN_MS = 10000, POLL_MS = 5, CONFIG_MAX_BYTES = 4 * PATH_MAX };

/* The process that listens on the socket; 0 if none does. */
static pid_t socket_owner(const struct dev_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t length = sizeof peer;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", server->socket);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0);
    close(fd);
    return peer.pid;
}

static void poll_timer_fired(uv_timer_t *timer)
{
    (void)timer; /* only wakes the loop, so that dev_redis_wait() checks again */
}

bool dev_redis_wait(struct dev_redis *redis, bool (*holds)(const void *arg), const void *arg, unsigned within_ms)
{
    uv_update_time(redis->loop);
    uint64_t until_ms = uv_now(redis->loop) + within_ms;

    uv_timer_start(&redis->timer, poll_timer_fired, POLL_MS, POLL_MS);
    while (!holds(arg) && uv_now(redis->loop) < until_ms)
        uv_run(redis->loop, UV_RUN_ONCE);
    uv_timer_stop(&redis->timer);
    return holds(arg);
}

static bool nobody_listens(const void *arg)
{
    return socket_owner(arg) == 0;
}

bool dev_redis_is_running(const struct dev_redis *redis)
{
    for (unsigned i = 0; i < redis->count; i++)
        if (!redis->children[i].is_running)
            return false;
    return true;
}

static bool answers_or_ended(const void *arg)
{
    const struct dev_child *child = arg;

    return !child->is_running || socket_owner(child->server) != 0;
}

static bool has_ended(const void *arg)
{
    const struct dev_child *child = arg;

    return !child->is_running;
}

/* We hold the folder's lock, so a Redis that still listens on its socket serves nobody. */
static int stop_leftover(struct dev_redis *redis, const struct dev_server *server)
{
    pid_t pid = socket_owner(server);

    if (pid == 0)
        return EXIT_DONE;
    LOG(LOG_INFO, "stopping a redis-server left running in this folder", log_int("pid", pid));
    /* It may be ending: it gets a signal when the one that started it ends. */
    if ((kill(pid, SIGTERM) == 0 || errno == ESRCH) && dev_redis_wait(redis, nobody_listens, server, START_WITHIN_MS))
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "the redis-server left running in %s (process %ld) does not stop; kill it",
                        redis->home->path, (long)pid);
}

static int check_port(const struct dev_home *home, uint16_t port)
{
    if (port == 0 || dev_port_is_free(port))
        return EXIT_DONE;
    return command_fail(EXIT_FAILED,
                        "another process uses port %u of 127.0.0.1, which the cluster in %s needs; stop that process, "
                        "or choose another folder with --dir",
                        (unsigned)port, home->path);
}

static bool is_in_path(const char *program)
{
    char candidate[PATH_MAX];
    const char *path = getenv("PATH");
    struct text rest = text_of(path ? path : ""), folder;

    while (text_next(&rest, ':', &folder)) {
        int length = snprintf(candidate, sizeof candidate, "%.*s/%s", TEXT_ARG(folder), program);
        if (length > 0 && (size_t)length < sizeof candidate && access(candidate, X_OK) == 0)
            return true;
    }
    return false;
}

/* The server to start; NULL: none is installed. Debian 13 has both. */
static const char *find_server(void)
{
    static const char *const SERVERS[] = {"redis-server", "valkey-server"};

    for (size_t i = 0; i < sizeof SERVERS / sizeof *SERVERS; i++)
        if (is_in_path(SERVERS[i]))
            return SERVERS[i];
    return NULL;
}

/* In the syntax of redis.conf: quoted, with escapes. */
static void put_quoted(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s \"", name);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            buf_append_char(out, '\\');
        buf_append_char(out, *value);
    }
    buf_append_str(out, "\"\n");
}

/* A primary without replicas: as long as it is down, the others serve their slots. */
static void put_cluster(struct buf *out, const struct dev_home *home, const struct dev_server *server)
{
    put_quoted(out, "requirepass", home->redis_password);
    buf_printf(out,
               "bind 127.0.0.1\n"
               "port %u\n"
               "cluster-enabled yes\n"
               "cluster-port %u\n"
               "cluster-require-full-coverage no\n",
               (unsigned)server->port, (unsigned)server->bus_port);
}

static int write_config(const struct dev_home *home, const struct dev_server *server)
{
    struct buf out CLEANUP(buf_wipe) = BUF_UP_TO(CONFIG_MAX_BYTES);

    put_quoted(&out, "dir", server->folder);
    put_quoted(&out, "unixsocket", server->socket);
    put_quoted(&out, "logfile", server->log);
    if (home->is_cluster)
        put_cluster(&out, home, server);
    else
        buf_append_str(&out, "port 0\n");
    buf_append_str(&out, "unixsocketperm 700\n"
                         "daemonize no\n"
                         "appendonly yes\n"
                         "appendfsync always\n"
                         "no-appendfsync-on-rewrite no\n"
                         "maxmemory-policy noeviction\n"
                         "save \"\"\n");
    return dev_home_write(home, server->config, buf_text(&out));
}

static void redis_exited(uv_process_t *process, int64_t status, int number)
{
    struct dev_child *child = process->data;
    struct dev_redis *redis = child->redis;

    child->is_running = false;
    if (redis->is_stopping)
        return;
    LOG(LOG_ERROR, "redis-server has exited, the node stops too", log_int("status", status), log_int("signal", number),
        log_str("see", child->server->log));
    if (redis->ended)
        redis->ended(redis->arg);
}

/* Detached, so that ^C on the terminal reaches only us: Redis must outlive the node's last flush. */
static int spawn(struct dev_child *child)
{
    char program[] = "chatelaine", command[] = "dev-redis", config[PATH_MAX];
    char *args[] = {program, command, config, NULL};
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_IGNORE}, {.flags = UV_IGNORE}, {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    const uv_process_options_t options = {.exit_cb = redis_exited,
                                          .file = "/proc/self/exe",
                                          .args = args,
                                          .flags = UV_PROCESS_DETACHED,
                                          .stdio_count = 3,
                                          .stdio = stdio};

    snprintf(config, sizeof config, "%s", child->server->config);
    child->process.data = child;
    int result = uv_spawn(child->redis->loop, &child->process, &options);
    if (result != 0)
        return command_fail(EXIT_FAILED, "Cannot start redis-server: %s", uv_strerror(result));
    child->is_running = true;
    return EXIT_DONE;
}

/* Does not wait for it. */
static int child_start(struct dev_redis *redis, const struct dev_server *server)
{
    struct dev_child *child = &redis->children[redis->count];
    int code = check_port(redis->home, server->port);

    *child = (struct dev_child){.redis = redis, .server = server};
    if (code == EXIT_DONE)
        code = check_port(redis->home, server->bus_port);
    if (code == EXIT_DONE)
        code = write_config(redis->home, server);
    if (code == EXIT_DONE) {
        redis->count++;
        code = spawn(child);
    }
    return code;
}

static int child_wait(struct dev_redis *redis, struct dev_child *child)
{
    if (dev_redis_wait(redis, answers_or_ended, child, START_WITHIN_MS) && child->is_running)
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "redis-server did not start; %s says why", child->server->log);
}

int dev_redis_start(struct dev_redis *redis, uv_loop_t *loop, const struct dev_home *home)
{
    int code = EXIT_DONE;

    *redis = (struct dev_redis){.loop = loop, .home = home, .is_open = true};
    CHECK(uv_timer_init(loop, &redis->timer) == 0);
    for (unsigned i = 0; i < home->server_count && code == EXIT_DONE; i++)
        code = stop_leftover(redis, &home->servers[i]);
    if (code == EXIT_DONE && !find_server())
        code =
            command_fail(EXIT_FAILED, "Neither redis-server nor valkey-server is in PATH; install Redis 7.0 or newer "
                                      "(Debian: apt-get install redis-server)");
    for (unsigned i = 0; i < home->server_count && code == EXIT_DONE; i++)
        code = child_start(redis, &home->servers[i]);
    for (unsigned i = 0; i < redis->count && code == EXIT_DONE; i++)
        code = child_wait(redis, &redis->children[i]);
    return code;
}

static void redis_part_closed(uv_handle_t *handle)
{
    struct dev_redis *redis = handle->data;

    redis->closing--;
}

static void close_part(struct dev_redis *redis, uv_handle_t *handle)
{
    handle->data = redis;
    redis->closing++;
    uv_close(handle, redis_part_closed);
}

/* It was told to stop already, so that all stop at the same time. */
static void child_stop(struct dev_redis *redis, struct dev_child *child)
{
    if (child->is_running && !dev_redis_wait(redis, has_ended, child, START_WITHIN_MS)) {
        LOG(LOG_WARN, "redis-server did not stop in time, killing it", log_str("see", child->server->log));
        uv_process_kill(&child->process, SIGKILL);
        (void)dev_redis_wait(redis, has_ended, child, START_WITHIN_MS);
    }
    if (uv_handle_get_type((uv_handle_t *)&child->process) == UV_PROCESS)
        close_part(redis, (uv_handle_t *)&child->process);
}

void dev_redis_stop(struct dev_redis *redis)
{
    if (!redis->is_open)
        return;
    redis->is_stopping = true;
    for (unsigned i = 0; i < redis->count; i++)
        if (redis->children[i].is_running)
            uv_process_kill(&redis->children[i].process, SIGTERM);
    for (unsigned i = 0; i < redis->count; i++)
        child_stop(redis, &redis->children[i]);
    close_part(redis, (uv_handle_t *)&redis->timer);
    while (redis->closing > 0)
        uv_run(redis->loop, UV_RUN_ONCE);
    redis->is_open = false;
}

/* The child. However its parent ends, the kernel then sends the child SIGTERM, so that Redis saves and exits. */
int dev_redis_run(const struct command_line *line)
{
    CHECK(prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) == 0);
    const char *server = find_server();

    if (!server)
        return command_fail(EXIT_FAILED, "Neither redis-server nor valkey-server is in PATH");
    execlp(server, server, line->operands[0], (char *)NULL);
    return command_fail(EXIT_FAILED, "Cannot start %s: %s", server, strerror(errno));
}

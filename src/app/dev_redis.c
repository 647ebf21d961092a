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
static pid_t socket_owner(const struct dev_home *home)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t length = sizeof peer;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", home->socket);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0);
    close(fd);
    return peer.pid;
}

static void poll_timer_fired(uv_timer_t *timer)
{
    (void)timer; /* only wakes the loop, so that wait_until() checks again */
}

/* Runs the loop until the condition holds; false if it times out. */
static bool wait_until(struct dev_redis *redis, bool (*holds)(const struct dev_redis *redis))
{
    uv_update_time(redis->loop);
    uint64_t until_ms = uv_now(redis->loop) + START_WITHIN_MS;

    uv_timer_start(&redis->timer, poll_timer_fired, POLL_MS, POLL_MS);
    while (!holds(redis) && uv_now(redis->loop) < until_ms)
        uv_run(redis->loop, UV_RUN_ONCE);
    uv_timer_stop(&redis->timer);
    return holds(redis);
}

static bool nobody_listens(const struct dev_redis *redis)
{
    return socket_owner(redis->home) == 0;
}

static bool answers_or_ended(const struct dev_redis *redis)
{
    return !redis->is_running || socket_owner(redis->home) != 0;
}

static bool has_ended(const struct dev_redis *redis)
{
    return !redis->is_running;
}

/* We hold the folder's lock, so a Redis that still listens on its socket serves nobody. */
static int stop_leftover(struct dev_redis *redis)
{
    pid_t pid = socket_owner(redis->home);

    if (pid == 0)
        return EXIT_DONE;
    LOG(LOG_INFO, "stopping a redis-server left running in this folder", log_int("pid", pid));
    if (kill(pid, SIGTERM) == 0 && wait_until(redis, nobody_listens))
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "the redis-server left running in %s (process %ld) does not stop; kill it",
                        redis->home->path, (long)pid);
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

static int write_config(const struct dev_home *home)
{
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, CONFIG_MAX_BYTES);
    put_quoted(&out, "dir", home->path);
    put_quoted(&out, "unixsocket", home->socket);
    put_quoted(&out, "logfile", home->redis_log);
    buf_append_str(&out, "unixsocketperm 700\n"
                         "port 0\n"
                         "daemonize no\n"
                         "appendonly yes\n"
                         "appendfsync always\n"
                         "no-appendfsync-on-rewrite no\n"
                         "maxmemory-policy noeviction\n"
                         "save \"\"\n");
    return dev_home_write(home, home->redis_config, buf_text(&out));
}

static void redis_exited(uv_process_t *process, int64_t status, int number)
{
    struct dev_redis *redis = process->data;

    redis->is_running = false;
    if (redis->is_stopping)
        return;
    LOG(LOG_ERROR, "redis-server has exited, the node stops too", log_int("status", status), log_int("signal", number),
        log_str("see", redis->home->redis_log));
    if (redis->ended)
        redis->ended(redis->arg);
}

/* Detached, so that ^C on the terminal reaches only us: Redis must outlive the node's last flush. */
static int spawn(struct dev_redis *redis)
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

    snprintf(config, sizeof config, "%s", redis->home->redis_config);
    redis->process.data = redis;
    int result = uv_spawn(redis->loop, &redis->process, &options);
    if (result != 0)
        return command_fail(EXIT_FAILED, "Cannot start redis-server: %s", uv_strerror(result));
    redis->is_running = true;
    return EXIT_DONE;
}

int dev_redis_start(struct dev_redis *redis, uv_loop_t *loop, const struct dev_home *home)
{
    *redis = (struct dev_redis){.loop = loop, .home = home, .is_open = true};
    CHECK(uv_timer_init(loop, &redis->timer) == 0);
    int code = stop_leftover(redis);
    if (code == EXIT_DONE && !find_server())
        code =
            command_fail(EXIT_FAILED, "Neither redis-server nor valkey-server is in PATH; install Redis 7.0 or newer "
                                      "(Debian: apt-get install redis-server)");
    if (code == EXIT_DONE)
        code = write_config(home);
    if (code == EXIT_DONE)
        code = spawn(redis);
    if (code == EXIT_DONE && (!wait_until(redis, answers_or_ended) || !redis->is_running))
        code = command_fail(EXIT_FAILED, "redis-server did not start; %s says why", home->redis_log);
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

void dev_redis_stop(struct dev_redis *redis)
{
    if (!redis->is_open)
        return;
    redis->is_stopping = true;
    if (redis->is_running)
        uv_process_kill(&redis->process, SIGTERM);
    if (redis->is_running && !wait_until(redis, has_ended)) {
        LOG(LOG_WARN, "redis-server did not stop in time, killing it", log_str("see", redis->home->redis_log));
        uv_process_kill(&redis->process, SIGKILL);
        (void)wait_until(redis, has_ended);
    }
    close_part(redis, (uv_handle_t *)&redis->timer);
    if (uv_handle_get_type((uv_handle_t *)&redis->process) == UV_PROCESS)
        close_part(redis, (uv_handle_t *)&redis->process);
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

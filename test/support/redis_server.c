#include "redis_server.h"
#include "deadline.h"
#include "free_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ARGS_MAX = 24 };

struct redis_server_tls_paths {
    char ca[PROCESS_PATH_BYTES], certificate[PROCESS_PATH_BYTES], key[PROCESS_PATH_BYTES], port[8];
};

const char *redis_server_address(const struct redis_server *server)
{
    return server->options.address ? server->options.address : "127.0.0.1";
}

const char *redis_server_binary(void)
{
    const char *other = getenv("CHATELAINE_TEST_REDIS_SERVER");

    return other ? other : "redis-server";
}

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof address.sun_path)
        test_give_up("socket %s", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Not through the stream: a Redis that has just ended would raise SIGPIPE. Whoever reads notices that. */
static void send_command(int fd, size_t argc, const char *const *argv)
{
    char *command = NULL;
    size_t len = 0;
    ssize_t sent = 0;
    FILE *out = open_memstream(&command, &len);

    fprintf(out, "*%zu\r\n", argc);
    for (size_t i = 0; i < argc; i++)
        fprintf(out, "$%zu\r\n%s\r\n", strlen(argv[i]), argv[i]);
    fclose(out);
    for (size_t done = 0; done < len && sent >= 0; done += (size_t)sent)
        sent = send(fd, command + done, len - done, MSG_NOSIGNAL);
    free(command);
}

/* A receive timeout on the socket would also do, but makes reads end with EINTR even if no handler ran. */
static bool is_answered(int fd)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (poll(&readable, 1, deadline_left_ms(deadline)) <= 0) {
        if (deadline_left_ms(deadline) == 0)
            return false;
    }
    return true;
}

/* Reads one reply and writes it as text. False: the connection ended. */
static bool read_reply(FILE *stream, FILE *out)
{
    char line[512];
    long count;

    if (!fgets(line, sizeof line, stream))
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    count = strtol(line + 1, NULL, 10);
    switch (line[0]) {
    case '$':
        if (count < 0)
            return fputs("(nil)", out) >= 0;
        for (long i = 0; i < count; i++)
            fputc(fgetc(stream), out);
        return fgets(line, sizeof line, stream) != NULL; /* the CRLF after it */
    case '*':
        for (long i = 0; i < count; i++) {
            if (!read_reply(stream, out))
                return false;
            fputc('\n', out);
        }
        return true;
    case '-':
        return fputs(line, out) >= 0;
    default:
        return fputs(line + 1, out) >= 0;
    }
}

/* The reply, which the caller frees. NULL: the connection ended. */
static char *ask_on(FILE *stream, size_t argc, const char *const *argv)
{
    char *reply = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&reply, &len);

    send_command(fileno(stream), argc, argv);
    bool done = is_answered(fileno(stream)) && read_reply(stream, out);
    fclose(out);
    if (!done) {
        free(reply);
        return NULL;
    }
    return reply;
}

/* NULL: the server cannot be reached. */
static FILE *open_stream(const struct redis_server *server)
{
    int fd = connect_unix(server->socket_path);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "r+");

    if (stream && server->options.password)
        free(ask_on(stream, 2, (const char *const[]){"AUTH", server->options.password}));
    return stream;
}

/* The reply, which the caller frees. NULL: the server cannot be reached, or goes away. */
static char *ask(const struct redis_server *server, size_t argc, const char *const *argv)
{
    FILE *stream = open_stream(server);
    char *reply;

    if (!stream)
        return NULL;
    reply = ask_on(stream, argc, argv);
    fclose(stream);
    return reply;
}

bool redis_server_sync(const struct redis_server *server, const char *name, unsigned timeout_ms)
{
    FILE *stream = open_stream(server);
    char timeout[16], *written, *replicas;

    if (!stream)
        return false;
    snprintf(timeout, sizeof timeout, "%u", timeout_ms);
    written = ask_on(stream, 3, (const char *const[]){"SET", name, ""});
    replicas = written ? ask_on(stream, 3, (const char *const[]){"WAIT", "1", timeout}) : NULL;
    fclose(stream);
    bool is_kept = replicas && strcmp(written, "OK") == 0 && strtoul(replicas, NULL, 10) >= 1;
    free(written);
    free(replicas);
    return is_kept;
}

/* The primary that an error "MOVED slot host:port" names; NULL: it is none. */
static const struct redis_server *find_owner(const struct redis_server *server, const char *reply)
{
    const char *colon = strncmp(reply, "-MOVED ", 7) == 0 ? strrchr(reply, ':') : NULL;
    unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;

    while (server && server->port != port)
        server = server->next;
    return server;
}

static char *ask_owner(const struct redis_server *server, size_t argc, const char *const *argv)
{
    char *reply = ask(server, argc, argv);
    const struct redis_server *owner = reply ? find_owner(server->next, reply) : NULL;

    if (!owner)
        return reply;
    free(reply);
    return ask(owner, argc, argv);
}

static size_t collect(va_list args, const char **argv)
{
    size_t argc = 0;
    const char *arg;

    while ((arg = va_arg(args, const char *)) != NULL) {
        if (argc == ARGS_MAX)
            test_give_up("too many arguments for Redis");
        argv[argc++] = arg;
    }
    if (argc == 0)
        test_give_up("no command for Redis");
    return argc;
}

bool redis_server_try(const struct redis_server *server, char *ret_reply, size_t size, size_t argc,
                      const char *const *argv)
{
    char *reply = ask(server, argc, argv);
    bool is_done = reply != NULL;

    snprintf(ret_reply, size, "%s", is_done ? reply : "");
    free(reply);
    return is_done;
}

void redis_server_ask(const struct redis_server *server, char *ret_reply, size_t size, ...)
{
    const char *argv[ARGS_MAX];
    va_list args;
    size_t argc;
    char *reply;

    va_start(args, size);
    argc = collect(args, argv);
    va_end(args);
    reply = ask_owner(server, argc, argv);
    if (!reply)
        test_give_up("Redis does not answer %s", argv[0]);
    snprintf(ret_reply, size, "%s", reply);
    free(reply);
}

/* Frees the reply. */
static void expect_done(const char *command, char *reply)
{
    if (!reply || reply[0] == '-')
        test_give_up("Redis, %s: %s", command, reply ? reply : "no answer");
    free(reply);
}

static void tell(const struct redis_server *server, bool all, va_list args)
{
    const char *argv[ARGS_MAX];
    size_t argc = collect(args, argv);

    if (!all)
        expect_done(argv[0], ask_owner(server, argc, argv));
    for (; all && server; server = server->next)
        expect_done(argv[0], ask(server, argc, argv));
}

void redis_server_tell(const struct redis_server *server, ...)
{
    va_list args;

    va_start(args, server);
    tell(server, false, args);
    va_end(args);
}

void redis_server_tell_all(const struct redis_server *server, ...)
{
    va_list args;

    va_start(args, server);
    tell(server, true, args);
    va_end(args);
}

static bool answers(const struct redis_server *server)
{
    char *reply = ask(server, 1, (const char *const[]){"PING"});
    bool is_up = reply && strcmp(reply, "PONG") == 0;

    free(reply);
    return is_up;
}

void redis_server_wait_up(struct redis_server *server)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!answers(server)) {
        if (process_wait(&server->process, 5) || deadline_left_ms(deadline) == 0)
            test_give_up("redis-server does not come up, see %s: %s", server->process.out_path,
                         file_read(server->process.out_path));
    }
}

/* A replica may take over however long it has not heard of its primary: the machine may be slow. */
static size_t add_cluster(const struct redis_server *server, const char **argv, char port[8], char timeout[16])
{
    const char *const words[] = {"--cluster-enabled",
                                 "yes",
                                 "--cluster-node-timeout",
                                 timeout,
                                 "--cluster-replica-validity-factor",
                                 "0",
                                 "--cluster-port",
                                 port,
                                 "--cluster-require-full-coverage",
                                 server->options.serves_part ? "no" : "yes"};

    if (server->options.cluster_port == 0)
        return 0;
    snprintf(port, 8, "%u", server->options.cluster_port);
    snprintf(timeout, 16, "%u", server->options.cluster_timeout_ms ? server->options.cluster_timeout_ms : 30000);
    memcpy(argv, words, sizeof words);
    return sizeof words / sizeof *words;
}

/* Replicas, Sentinels and the nodes of a cluster use TLS between them, too. */
static void add_tls(const struct redis_server *server, const char **argv, struct redis_server_tls_paths *paths)
{
    const char *folder = server->options.tls;
    const char *const words[] = {"--tls-ca-cert-file", paths->ca,
                                 "--tls-cert-file",    paths->certificate,
                                 "--tls-key-file",     paths->key,
                                 "--tls-auth-clients", server->options.asks_for_certificates ? "yes" : "no",
                                 "--tls-replication",  "yes",
                                 "--tls-port",         paths->port,
                                 "--tls-cluster",      server->options.cluster_port > 0 ? "yes" : "no"};

    if (!folder)
        return;
    snprintf(paths->ca, sizeof paths->ca, "%s/ca.pem", folder);
    snprintf(paths->certificate, sizeof paths->certificate, "%s/redis.pem", folder);
    snprintf(paths->key, sizeof paths->key, "%s/redis.key", folder);
    snprintf(paths->port, sizeof paths->port, "%u",
             server->options.tls_port > 0 ? server->options.tls_port : server->port);
    memcpy(argv, words, sizeof words);
}

static size_t add_guards(const struct redis_server *server, const char **argv)
{
    static const char *const GUARDS[] = {"--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"};

    if (!server->options.guarded)
        return 0;
    memcpy(argv, GUARDS, sizeof GUARDS);
    return sizeof GUARDS / sizeof *GUARDS;
}

static size_t add_announced(const struct redis_server *server, const char **argv, char port[8])
{
    const char *const words[] = {"--replica-announce-ip", "127.0.0.1", "--replica-announce-port", port};

    if (!server->options.behind_proxy)
        return 0;
    snprintf(port, 8, "%u", server->port);
    memcpy(argv, words, sizeof words);
    return sizeof words / sizeof *words;
}

/* Without the thread of Redis' allocator: under a clock that was set back it waits for a time that is over, in a
 * circle. */
static size_t add_basics(const struct redis_server *server, const char **argv, char port[8])
{
    const char *const words[] = {redis_server_binary(),
                                 "--dir",
                                 server->folder,
                                 "--unixsocket",
                                 server->socket_path,
                                 "--port",
                                 port,
                                 "--bind",
                                 redis_server_address(server),
                                 "--protected-mode",
                                 "no",
                                 "--save",
                                 "",
                                 "--appendfsync",
                                 "always",
                                 "--loglevel",
                                 "warning",
                                 "--daemonize",
                                 "no",
                                 "--maxmemory-policy",
                                 "noeviction",
                                 "--repl-diskless-sync-delay",
                                 "0",
                                 "--jemalloc-bg-thread",
                                 "no",
                                 "--appendonly",
                                 server->options.not_durable ? "no" : "yes"};

    snprintf(port, 8, "%u",
             server->options.behind_proxy || (server->options.tls && !server->options.tls_port) ? 0 : server->port);
    memcpy(argv, words, sizeof words);
    return sizeof words / sizeof *words;
}

static void run(struct redis_server *server)
{
    struct redis_server_tls_paths tls;
    char port[8], announced_port[8], cluster_port[8], cluster_timeout[16], load_delay[16];
    const char *argv[64] = {NULL};
    size_t argc = add_basics(server, argv, port);

    argc += add_guards(server, argv + argc);
    argc += add_announced(server, argv + argc, announced_port);
    if (server->options.password) {
        argv[argc++] = "--requirepass";
        argv[argc++] = server->options.password;
    }
    if (server->options.allows_debug) {
        argv[argc++] = "--enable-debug-command";
        argv[argc++] = "yes";
    }
    if (server->options.load_delay_us > 0) {
        snprintf(load_delay, sizeof load_delay, "%u", server->options.load_delay_us);
        argv[argc++] = "--key-load-delay";
        argv[argc++] = load_delay;
    }
    argc += add_cluster(server, argv + argc, cluster_port, cluster_timeout);
    add_tls(server, argv + argc, &tls);
    unlink(server->socket_path);
    process_start(&server->process, server->folder, "redis", argv);
    if (server->options.load_delay_us == 0)
        redis_server_wait_up(server);
}

void redis_server_prepare(struct redis_server *server, const struct redis_server_options *options)
{
    *server = (struct redis_server){.options = options ? *options : (struct redis_server_options){0}};
    folder_make(server->folder);
    snprintf(server->socket_path, sizeof server->socket_path, "%.100s/redis.sock", server->folder);
    snprintf(server->url, sizeof server->url, "unix:%s%s%.40s", server->socket_path,
             server->options.password ? "?password=" : "", server->options.password ? server->options.password : "");
    server->port = server->options.tcp ? free_port() : 0;
}

void redis_server_start(struct redis_server *server, const struct redis_server_options *options)
{
    redis_server_prepare(server, options);
    run(server);
}

void redis_server_open_port(struct redis_server *server)
{
    char port[8];

    server->port = free_port();
    snprintf(port, sizeof port, "%u", server->port);
    redis_server_tell(server, "CONFIG", "SET", "port", port, NULL);
}

void redis_server_put_behind(struct redis_server *server, uint16_t proxy_port)
{
    char port[8];

    server->port = proxy_port;
    server->options.behind_proxy = true;
    snprintf(port, sizeof port, "%u", proxy_port);
    redis_server_tell(server, "CONFIG", "SET", "replica-announce-ip", "127.0.0.1", "replica-announce-port", port, NULL);
}

void redis_server_kill(struct redis_server *server)
{
    for (; server; server = server->next)
        process_kill(&server->process);
}

void redis_server_restart(struct redis_server *server)
{
    redis_server_kill(server);
    for (; server; server = server->next)
        run(server);
}

void redis_server_forget(struct redis_server *server)
{
    char data[PROCESS_PATH_BYTES + 16];

    for (; server; server = server->next) {
        snprintf(data, sizeof data, "%s/appendonlydir", server->folder);
        folder_remove(data);
    }
}

static void copy_folder(const struct redis_server *server, const char *from, const char *to)
{
    struct process copying;

    if (process_run(&copying, server->folder, "cp", (const char *const[]){"cp", "-a", from, to, NULL}, NULL,
                    PATIENCE_MS) != 0)
        test_give_up("%s cannot be copied", from);
}

void redis_server_keep(struct redis_server *server)
{
    char from[PROCESS_PATH_BYTES + 16], to[PROCESS_PATH_BYTES + 16];

    for (; server; server = server->next) {
        snprintf(from, sizeof from, "%s/appendonlydir", server->folder);
        snprintf(to, sizeof to, "%s/kept", server->folder);
        folder_remove(to);
        copy_folder(server, from, to);
    }
}

void redis_server_put_back(struct redis_server *server)
{
    char from[PROCESS_PATH_BYTES + 16], to[PROCESS_PATH_BYTES + 16];

    redis_server_kill(server);
    redis_server_forget(server);
    for (struct redis_server *each = server; each; each = each->next) {
        snprintf(from, sizeof from, "%s/kept", each->folder);
        snprintf(to, sizeof to, "%s/appendonlydir", each->folder);
        copy_folder(each, from, to);
    }
    redis_server_restart(server);
}

void redis_server_freeze(struct redis_server *server)
{
    for (; server; server = server->next)
        process_signal(&server->process, SIGSTOP);
}

void redis_server_thaw(struct redis_server *server)
{
    for (; server; server = server->next)
        process_signal(&server->process, SIGCONT);
}

void redis_server_stop(struct redis_server *server)
{
    for (; server; server = server->next) {
        process_kill(&server->process);
        folder_remove(server->folder);
    }
}

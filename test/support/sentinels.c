#include "sentinels.h"
#include "deadline.h"
#include "free_port.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_MS = 50, REPLY_BYTES = 16384 };

static bool says(const struct redis_server *server, const char *wanted, const char *command, const char *argument)
{
    static char reply[REPLY_BYTES];

    redis_server_ask(server, reply, sizeof reply, command, argument, NULL);
    return strstr(reply, wanted) != NULL;
}

/* The lines of sentinel.conf for TLS; none without. */
static void print_tls(const char *folder, unsigned port, char *ret_conf, size_t size)
{
    ret_conf[0] = '\0';
    if (folder)
        snprintf(ret_conf, size,
                 "tls-port %u\ntls-ca-cert-file %s/ca.pem\ntls-cert-file %s/redis.pem\ntls-key-file %s/redis.key\n"
                 "tls-auth-clients no\ntls-replication yes\n",
                 port, folder, folder, folder);
}

static void sentinel_start(struct redis_server *server, uint16_t master_port, const char *tls)
{
    char path[PROCESS_PATH_BYTES], conf[2048], tls_conf[1024];

    server->options.tcp = true;
    folder_make(server->folder);
    snprintf(server->socket_path, sizeof server->socket_path, "%.100s/sentinel.sock", server->folder);
    server->port = free_port();
    snprintf(path, sizeof path, "%.100s/sentinel.conf", server->folder);
    print_tls(tls, server->port, tls_conf, sizeof tls_conf);
    snprintf(conf, sizeof conf,
             "%sport %u\nbind 127.0.0.1\nunixsocket %s\ndir %s\njemalloc-bg-thread no\n"
             "sentinel monitor " SENTINELS_MASTER_NAME " 127.0.0.1 %u 2\n"
             "sentinel down-after-milliseconds " SENTINELS_MASTER_NAME " 3000\n"
             "sentinel failover-timeout " SENTINELS_MASTER_NAME " 4000\n",
             tls_conf, tls ? 0 : server->port, server->socket_path, server->folder, master_port);
    file_write(path, conf);
    process_start(&server->process, server->folder, "sentinel",
                  (const char *const[]){redis_server_binary(), path, "--sentinel", NULL});
}

static bool is_in_touch(const struct sentinels *sentinels, unsigned index)
{
    static char reply[REPLY_BYTES];
    const struct redis_server *server = &sentinels->servers[index];
    char wanted[32];

    redis_server_ask(server, reply, sizeof reply, "SENTINEL", "MASTER", SENTINELS_MASTER_NAME, NULL);
    snprintf(wanted, sizeof wanted, "num-slaves\n%u\n", sentinels->redis_count - 1);
    if (!strstr(reply, "num-other-sentinels\n2\n") || !strstr(reply, wanted) || !strstr(reply, "\nflags\nmaster\n"))
        return false;
    redis_server_ask(server, reply, sizeof reply, "SENTINEL", "REPLICAS", SENTINELS_MASTER_NAME, NULL);
    return !strstr(reply, "_down") && !strstr(reply, "disconnected") && !strstr(reply, "master-link-status\nerr");
}

static bool is_whole(const struct sentinels *sentinels)
{
    unsigned master = sentinels_master(sentinels);
    char wanted[40];

    for (unsigned i = 0; i < SENTINELS; i++)
        if (!is_in_touch(sentinels, i))
            return false;
    snprintf(wanted, sizeof wanted, "min_slaves_good_slaves:%u", sentinels->redis_count - 1);
    return says(sentinels->redises[master], wanted, "INFO", "replication");
}

bool sentinels_wait_whole(const struct sentinels *sentinels, unsigned timeout_ms)
{
    struct deadline deadline = deadline_in(timeout_ms);

    while (!is_whole(sentinels)) {
        if (deadline_left_ms(deadline) == 0)
            return false;
        poll(NULL, 0, STEP_MS);
    }
    return true;
}

static void print_url(struct sentinels *sentinels)
{
    const char *scheme = sentinels->redises[0]->options.tls ? "rediss-sentinel" : "redis-sentinel";
    int length = snprintf(sentinels->url, sizeof sentinels->url,
                          "%s://127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u/" SENTINELS_MASTER_NAME, scheme,
                          sentinels->servers[0].port, sentinels->servers[1].port, sentinels->servers[2].port);

    snprintf(sentinels->url_of_first, sizeof sentinels->url_of_first, "%s://127.0.0.1:%u/" SENTINELS_MASTER_NAME,
             scheme, sentinels->servers[0].port);
    if (length < 0 || (size_t)length >= sizeof sentinels->url)
        abort();
}

/* Sets the guard last, because it refuses every change until there are replicas. */
void sentinels_start(struct sentinels *sentinels, struct redis_server *master, unsigned replicas)
{
    char port[8];

    *sentinels = (struct sentinels){.redises = {master}, .redis_count = replicas + 1};
    if (master->port == 0)
        redis_server_open_port(master);
    snprintf(port, sizeof port, "%u", master->port);
    for (unsigned i = 0; i < replicas; i++) {
        sentinels->redises[i + 1] = &sentinels->replicas[i];
        redis_server_start(&sentinels->replicas[i],
                           &(struct redis_server_options){.tcp = true, .guarded = true, .tls = master->options.tls});
        /* Also if its connection comes through a proxy, from a Unix socket. */
        redis_server_tell(&sentinels->replicas[i], "CONFIG", "SET", "replica-announce-ip", "127.0.0.1", NULL);
        redis_server_tell(&sentinels->replicas[i], "REPLICAOF", "127.0.0.1", port, NULL);
    }
    master->options.guarded = true;
    redis_server_tell(master, "CONFIG", "SET", "min-replicas-to-write", "1", "min-replicas-max-lag", "2", NULL);
    for (unsigned i = 0; i < SENTINELS; i++)
        sentinel_start(&sentinels->servers[i], master->port, master->options.tls);
    for (unsigned i = 0; i < SENTINELS; i++)
        redis_server_wait_up(&sentinels->servers[i]);
    print_url(sentinels);
    if (!sentinels_wait_whole(sentinels, PATIENCE_MS))
        test_give_up("the Sentinels do not come to know each other, see %s", sentinels->servers[0].process.out_path);
}

void sentinels_demand(struct sentinels *sentinels, const char *password, const char *user, const char *user_password)
{
    char secret[64], user_secret[64];

    snprintf(secret, sizeof secret, ">%s", password);
    snprintf(user_secret, sizeof user_secret, ">%s", user_password);
    for (unsigned i = 0; i < SENTINELS; i++) {
        struct redis_server *server = &sentinels->servers[i];

        /* What they ask each other for votes with. */
        redis_server_tell(server, "SENTINEL", "CONFIG", "SET", "sentinel-pass", password, NULL);
        redis_server_tell(server, "ACL", "SETUSER", user, "reset", "on", user_secret, "&+switch-master", "+ping",
                          "+client|setname", "+subscribe", "+sentinel|master", "+sentinel|get-master-addr-by-name",
                          NULL);
        redis_server_tell(server, "ACL", "SETUSER", "default", "resetpass", secret, NULL);
        server->options.password = password;
    }
}

static unsigned named_by(const struct sentinels *sentinels, unsigned sentinel)
{
    char reply[256], wanted[16];

    redis_server_ask(&sentinels->servers[sentinel], reply, sizeof reply, "SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                     SENTINELS_MASTER_NAME, NULL);
    for (unsigned i = 0; i < sentinels->redis_count; i++) {
        snprintf(wanted, sizeof wanted, "\n%u\n", sentinels->redises[i]->port);
        if (strstr(reply, wanted))
            return i;
    }
    test_give_up("a Sentinel names a stranger: %s", reply);
}

unsigned sentinels_master(const struct sentinels *sentinels)
{
    unsigned second, third;

    do {
        second = named_by(sentinels, 1);
        third = named_by(sentinels, 2);
    } while (second != third);
    return second;
}

void sentinels_stop(struct sentinels *sentinels)
{
    for (unsigned i = 0; i < SENTINELS; i++)
        redis_server_stop(&sentinels->servers[i]);
    for (unsigned i = 0; i + 1 < sentinels->redis_count; i++)
        redis_server_stop(&sentinels->replicas[i]);
}

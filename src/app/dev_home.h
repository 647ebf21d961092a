/* The folder of development mode and its files. One process at a time uses it. */
#pragma once
#include "admin/command.h"

#include <limits.h>

#define DEV_GUIDE_FILE "guide.sh"

enum {
    DEV_PASSWORD_CHARS = 20,
    DEV_URI_MAX_BYTES = 1024,
    DEV_EMAIL_MAX_BYTES = 255,
    DEV_CLUSTER_SERVERS = 3, /* the fewest with which Redis Cluster works */
};

/* The files of one Redis. */
struct dev_server {
    char folder[PATH_MAX], config[PATH_MAX], log[PATH_MAX];
    char socket[108];        /* fits sockaddr_un */
    uint16_t port, bus_port; /* on 127.0.0.1, the same at each start; 0 without a cluster */
};

struct dev_home {
    char path[PATH_MAX]; /* absolute */
    char master_key[PATH_MAX], totp_file[PATH_MAX], cluster_file[PATH_MAX], guide[PATH_MAX];
    bool is_cluster;
    struct dev_server servers[DEV_CLUSTER_SERVERS];
    unsigned server_count;
    char socket_folder[64]; /* made by us if the home's path is too long for a socket; else empty */
    char redis_password[DEV_PASSWORD_CHARS + 1]; /* of a cluster's servers; else empty */
    char redis_url[PATH_MAX];                    /* unix:… or redis-cluster://… */
    int lock;
};

/* Opens and locks the folder. Creates it, with a master key and the ports and password of a cluster, if it does not
 * exist. Refuses a folder of the other kind. Call dev_home_close() in any case, also on failure. */
MUST_CHECK int dev_home_open(struct dev_home *home, const char *dir, bool is_cluster);
void dev_home_close(struct dev_home *home);
/* Whether nothing listens on that port of 127.0.0.1. */
MUST_CHECK bool dev_port_is_free(uint16_t port);
/* True if another process has the folder open. */
MUST_CHECK bool dev_home_is_in_use(const char *dir);

/* A new password, random, of letters, digits, '-' and '_'. */
void dev_password_make(char ret_password[DEV_PASSWORD_CHARS + 1]);

/* Email, password and TOTP secret. They are stored in clear, so this mode is for development only. The caller must wipe
 * them. */
struct dev_credentials {
    char email[DEV_EMAIL_MAX_BYTES];
    char password[DEV_PASSWORD_CHARS + 1];
    char totp_uri[DEV_URI_MAX_BYTES];
};
/* False if there are none, or they cannot be read. */
MUST_CHECK bool dev_credentials_read(const struct dev_home *home, struct dev_credentials *ret_credentials);
MUST_CHECK int dev_credentials_write(const struct dev_home *home, const struct dev_credentials *credentials);

/* Writes a file that only its owner can read. Replaces it atomically; it is on disk when this returns. */
MUST_CHECK int dev_home_write(const struct dev_home *home, const char *path, struct text content);

/* The folder of development mode and its files. One process at a time uses it. */
#pragma once
#include "admin/command.h"

#include <limits.h>

#define DEV_GUIDE_FILE "guide.sh"

enum { DEV_PASSWORD_CHARS = 20, DEV_URI_MAX_BYTES = 1024, DEV_EMAIL_MAX_BYTES = 255 };

struct dev_home {
    char path[PATH_MAX]; /* absolute */
    char master_key[PATH_MAX], totp_file[PATH_MAX], redis_config[PATH_MAX], redis_log[PATH_MAX], guide[PATH_MAX];
    char socket[108];         /* fits sockaddr_un */
    char socket_folder[64];   /* made by us if the home's path is too long for a socket; else empty */
    char redis_url[PATH_MAX]; /* unix:… */
    int lock;
};

/* Opens and locks the folder. Creates it, with a master key, if it does not exist. Call dev_home_close() in any case,
 * also on failure. */
MUST_CHECK int dev_home_open(struct dev_home *home, const char *dir);
void dev_home_close(struct dev_home *home);
/* True if another process has the folder open. */
MUST_CHECK bool dev_home_is_in_use(const char *dir);

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

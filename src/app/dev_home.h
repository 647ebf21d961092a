/* The folder of the development mode: one process at a time, and what lies in it. */
#pragma once
#include "admin/command.h"

#include <limits.h>

#define DEV_GUIDE_FILE "guide.sh"

enum { DEV_PASSWORD_CHARS = 20, DEV_URI_MAX_BYTES = 1024, DEV_EMAIL_MAX_BYTES = 255 };

struct dev_home {
    char path[PATH_MAX]; /* absolute */
    char master_key[PATH_MAX], totp_file[PATH_MAX], redis_config[PATH_MAX], redis_log[PATH_MAX], guide[PATH_MAX];
    char socket[108];         /* fits sockaddr_un */
    char socket_folder[64];   /* of our own making, where the home's path is too long for a socket; else empty */
    char redis_url[PATH_MAX]; /* unix:… */
    int lock;
};

/* Makes the folder where there is none, with a master key, and locks it. Ends with dev_home_close(), also on failure.
 */
MUST_CHECK int dev_home_open(struct dev_home *home, const char *dir);
void dev_home_close(struct dev_home *home);
/* Another process has it open. */
MUST_CHECK bool dev_home_is_in_use(const char *dir);

/* How to sign in. It is kept in clear, which is why this is a development mode. Wipe it. */
struct dev_credentials {
    char email[DEV_EMAIL_MAX_BYTES];
    char password[DEV_PASSWORD_CHARS + 1];
    char totp_uri[DEV_URI_MAX_BYTES];
};
/* False where there are none, or none that can be read. */
MUST_CHECK bool dev_credentials_read(const struct dev_home *home, struct dev_credentials *ret_credentials);
MUST_CHECK int dev_credentials_write(const struct dev_home *home, const struct dev_credentials *credentials);

/* A file in the home that only its owner can read, replaced as a whole and on disk when this returns. */
MUST_CHECK int dev_home_write(const struct dev_home *home, const char *path, struct text content);

#include "app/dev.h"

#include "dev_cluster.h"
#include "dev_guide.h"
#include "dev_redis.h"

#include "admin/commands.h"
#include "admin/users.h"
#include "app/serve.h"
#include "base/check.h"
#include "base/secure.h"
#include "config/key_file.h"
#include "core/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEV_EMAIL "admin@chatelaine.localhost"
#define DEV_ACCOUNT TEXT("Demo Clinic")

enum { DEV_WHY_MAX_BYTES = 1024 };

static const struct option_row DEV_ROWS[] = {
    {.name = "dir",
     A_TEXT(offsetof(struct command_line, dir), "PATH"),
     .default_text = ".chatelaine",
     .help = "Keep everything in this folder: data, master key, password."},
    ROW_FLAG("cluster", cluster,
             "Run a Redis Cluster of three primaries instead of one Redis. A folder stays with what it was made for."),
    ROW_FLAG("guide", guide,
             "Also print a QR code and commands to try. If a node already runs in the folder, print its guide and "
             "exit."),
};

/* As for a node, but quiet by default, so that how to sign in stays the last thing on the screen. */
static const struct option_row DEV_LOG_ROWS[] = {
    {.name = "log-level",
     A_CHOICE(offsetof(struct settings, log_level), "warn", "debug|info|warn|error"),
     .help = "Write log lines of this level and above."},
    {.name = "log-format",
     A_CHOICE(offsetof(struct settings, log_format), "logfmt", "logfmt|json"),
     .help = "Write log lines to standard error in this format."},
};
static const struct option_table DEV_LOG_TABLE = OPTION_TABLE(DEV_LOG_ROWS);

const struct option_group DEV_OPTIONS[] = {OPTIONS_OF(DEV_ROWS),          {"Node", &SETTINGS_NODE},
                                           {NULL, &SETTINGS_REVOCATIONS}, {"Log", &DEV_LOG_TABLE},
                                           {"Limits", &SETTINGS_LIMITS},  {0}};

struct dev {
    uv_loop_t loop;
    struct dev_home home;
    struct dev_redis redis;
    struct dev_credentials credentials;
    struct settings settings;
    struct serve serve;
    char listen[HTTP_ADDRESS_BYTES];
    char origin[HTTP_ADDRESS_BYTES + 8];
    bool wants_guide;
};

/* Settings */

/* As many connections as the open-files limit allows. In development, fewer are no reason for a warning. */
static int dev_fit_connections(struct settings *settings)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return command_fail(EXIT_FAILED, "cannot read the open-files limit: %s", strerror(errno));
    settings->limits.connections_max = settings_connections_within(settings, files.rlim_cur);
    return EXIT_DONE;
}

/* Default store settings, but with our own Redis. */
static int dev_fill_settings(struct dev *dev, const struct settings *given)
{
    struct buf why = BUF_FIXED(DEV_WHY_MAX_BYTES);
    int rest;
    struct settings store;

    if (!options_read(&SETTINGS_STORE, 1, &store, 0, NULL, &rest, &why))
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    dev->settings = *given;
    dev->settings.redis = dev->home.redis_url;
    dev->settings.prefix = store.prefix;
    dev->settings.partitions = store.partitions;
    dev->settings.unsafe_redis = dev->home.is_cluster; /* its primaries have no replicas */
    dev->settings.redis_timeout_ms = store.redis_timeout_ms;
    dev->settings.audit_max = store.audit_max;
    dev->settings.keys_max = store.keys_max;
    dev->settings.device_keys_max = store.device_keys_max;
    dev->settings.keys_per_day = store.keys_per_day;
    dev->settings.revoked_key_days = store.revoked_key_days;
    dev->settings.people_max = store.people_max;
    dev->settings.changes_per_minute = store.changes_per_minute;
    dev->settings.master_key_file = dev->home.master_key;
    dev->settings.listen = dev->listen;
    dev->settings.public_origin = dev->origin;
    dev->settings.redirects_localhost = !text_starts_with(text_of(dev->origin), TEXT("http://localhost"));
    return dev_fit_connections(&dev->settings);
}

/* Without TLS, others on the network can read passwords and cookies. */
static void warn_of_clear_text(const char *listen)
{
    struct address address;

    if (text_starts_with(text_of(listen), TEXT("localhost:")) ||
        (address_parse(text_of(listen), &address) && address_is_loopback(&address)))
        return;
    LOG(LOG_WARN, "passwords and cookies cross the network in clear text: listen on 127.0.0.1, or put TLS in front",
        log_str("listen", listen));
}

/* The origin must be known before the node listens, so port 0 is resolved here. */
static uint16_t find_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    CHECK(bind(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    close(fd);
    return ntohs(address.sin_port);
}

static int dev_choose_origin(struct dev *dev, const char *listen)
{
    const char *colon = strrchr(listen, ':');
    uint64_t port;

    if (!colon || text_starts_with(text_of(listen), TEXT("unix:")) ||
        !text_to_u64(text_of(colon + 1), UINT16_MAX, &port))
        return command_fail(EXIT_USAGE, "'dev' needs --listen as host:port, not '%s'", listen);
    if (port == 0)
        port = find_free_port();
    struct text host = {listen, (size_t)(colon - listen)};
    bool is_any = text_equal(host, TEXT("0.0.0.0")) || text_equal(host, TEXT("[::]"));
    snprintf(dev->listen, sizeof dev->listen, "%.*s:%u", TEXT_ARG(host), (unsigned)port);
    warn_of_clear_text(dev->listen);
    if (is_any)
        host = TEXT("127.0.0.1");
    int length = snprintf(dev->origin, sizeof dev->origin, "http://%.*s", TEXT_ARG(host));
    if (port != 80 && (size_t)length < sizeof dev->origin)
        snprintf(dev->origin + length, sizeof dev->origin - (size_t)length, ":%u", (unsigned)port);
    return EXIT_DONE;
}

/* The first account and user */

static int keep_credentials(struct dev *dev, struct text password, const struct totp_secret *totp)
{
    struct buf uri;

    snprintf(dev->credentials.email, sizeof dev->credentials.email, "%s", DEV_EMAIL);
    snprintf(dev->credentials.password, sizeof dev->credentials.password, "%.*s", TEXT_ARG(password));
    buf_init_fixed(&uri, dev->credentials.totp_uri, sizeof dev->credentials.totp_uri - 1);
    totp_print_uri(totp, TOTP_ISSUER, TEXT(DEV_EMAIL), &uri);
    CHECK(!uri.failed);
    dev->credentials.totp_uri[uri.len] = '\0';
    return dev_credentials_write(&dev->home, &dev->credentials);
}

static int make_user(struct store_client *client, struct keyring *keyring, struct text password,
                     struct totp_secret *ret_totp)
{
    struct id account;
    struct new_user user;
    int code = account_add(client, DEV_ACCOUNT, &account);

    if (code == EXIT_DONE)
        code = user_add(client, keyring, &account, DEV_EMAIL, ROLE_OWNER, password, false, &user);
    if (code == EXIT_DONE)
        *ret_totp = user.totp;
    secure_wipe(&user, sizeof user);
    return code;
}

/* The user exists but the credentials file is lost: gives the user new credentials. */
static int renew_user(struct store_client *client, struct keyring *keyring, const struct id *user, struct text password,
                      struct totp_secret *ret_totp)
{
    char hash[PASSWORD_HASH_BYTES];
    uint8_t sealed[TOTP_SEALED_BYTES];

    user_hash_password(client, keyring, user, password, hash);
    totp_secret_mint(ret_totp);
    keyring_seal(keyring, id_text(user), ret_totp->bytes, TOTP_SECRET_BYTES, sealed);
    return user_reset(client, user, hash, false, sealed);
}

static int make_credentials(struct dev *dev, struct store_client *client, struct keyring *keyring,
                            const struct id *known_user)
{
    char password[DEV_PASSWORD_CHARS + 1];
    struct totp_secret totp = {0};

    dev_password_make(password);
    int code = known_user ? renew_user(client, keyring, known_user, text_of(password), &totp)
                          : make_user(client, keyring, text_of(password), &totp);
    if (code == EXIT_DONE)
        code = keep_credentials(dev, text_of(password), &totp);
    secure_wipe(password, sizeof password);
    secure_wipe(&totp, sizeof totp);
    return code;
}

static int find_or_make_user(struct dev *dev, struct store_client *client, struct keyring *keyring)
{
    struct known_user user;
    bool is_known;
    int code = user_find(client, DEV_EMAIL, &is_known, &user);

    if (code != EXIT_DONE || (is_known && dev_credentials_read(&dev->home, &dev->credentials)))
        return code;
    return make_credentials(dev, client, keyring, is_known ? &user.id : NULL);
}

static int dev_prepare_user(struct dev *dev)
{
    struct buf why = BUF_FIXED(DEV_WHY_MAX_BYTES);
    struct store_client client;

    struct keyring *keyring = key_file_load(&dev->settings, &why);
    if (!keyring)
        return command_fail(EXIT_FAILED, "%.*s", TEXT_ARG(buf_text(&why)));
    int code = master_key_adopt_own(&dev->settings, keyring);
    if (code == EXIT_DONE)
        code = store_client_open(&client, &dev->settings, keyring);
    if (code == EXIT_DONE) {
        code = find_or_make_user(dev, &client, keyring);
        store_client_close(&client);
    }
    keyring_destroy(keyring);
    if (code == EXIT_DONE)
        code = dev_home_write(&dev->home, dev->home.totp_file, text_of(dev->credentials.totp_uri));
    return code;
}

/* Serving */

static void dev_serving(void *arg, struct node *node)
{
    struct dev *dev = arg;
    const struct dev_guide guide = {.home = &dev->home,
                                    .credentials = &dev->credentials,
                                    .internal_address = node_internal_address(node),
                                    .origin = dev->origin,
                                    .is_wanted = dev->wants_guide};

    if (dev_guide_print(&guide) != EXIT_DONE)
        serve_stop(&dev->serve, EXIT_FAILED);
}

static void dev_redis_ended(void *arg)
{
    struct dev *dev = arg;

    serve_stop(&dev->serve, EXIT_FAILED);
}

static int dev_run(struct dev *dev, const struct command_line *line)
{
    int code = dev_home_open(&dev->home, line->dir, line->cluster);

    if (code == EXIT_DONE)
        code = dev_choose_origin(dev, line->settings.listen);
    if (code == EXIT_DONE)
        code = dev_fill_settings(dev, &line->settings);
    if (code == EXIT_DONE)
        code = dev_redis_start(&dev->redis, &dev->loop, &dev->home);
    if (code == EXIT_DONE && dev->home.is_cluster)
        code = dev_cluster_form(&dev->redis);
    if (code == EXIT_DONE)
        code = dev_prepare_user(dev);
    if (code != EXIT_DONE)
        return code;
    dev->redis.ended = dev_redis_ended;
    dev->redis.arg = dev;
    uv_update_time(&dev->loop); /* it stood still meanwhile, and deadlines of connections count from it */
    return serve_run(&dev->serve, &dev->loop, &dev->settings, dev_serving, dev);
}

int dev_command(const struct command_line *line)
{
    struct dev dev = {.wants_guide = line->guide};

    if (line->guide && dev_home_is_in_use(line->dir))
        return dev_guide_show(line->dir);
    CHECK(uv_loop_init(&dev.loop) == 0);
    int code = dev_run(&dev, line);
    dev_redis_stop(&dev.redis);
    dev_home_close(&dev.home);
    CHECK(uv_loop_close(&dev.loop) == 0);
    secure_wipe(&dev.credentials, sizeof dev.credentials);
    return code;
}

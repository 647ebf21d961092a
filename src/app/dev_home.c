#include "dev_home.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/random.h"
#include "base/secure.h"
#include "config/key_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* 15 random bytes are DEV_PASSWORD_CHARS characters of base64url. */
enum {
    FILE_MAX_BYTES = 4096,
    MASTER_KEY_TEXT_BYTES = 2 * KEYRING_MASTER_BYTES + 1,
    PASSWORD_RANDOM_BYTES = 15,
    WHY_MAX_BYTES = 512
};

/* Below the ports that the kernel gives to outgoing connections, so that a port is still free at the next start. */
enum { PORT_FIRST = 16384, PORT_COUNT = 16384 };

static int fail_with_errno(const char *what, const char *path)
{
    return command_fail(EXIT_FAILED, "cannot %s %s: %s", what, path, strerror(errno));
}

static int too_long(void)
{
    return command_fail(EXIT_USAGE, "the name of --dir is too long");
}

/* A path in the home; false if it is too long. */
static bool path_in(const struct dev_home *home, const char *name, char ret_path[PATH_MAX])
{
    int length = snprintf(ret_path, PATH_MAX, "%s/%s", home->path, name);

    return length > 0 && length < PATH_MAX;
}

/* A folder that only we can access. */
static int make_private_folder(const char *path)
{
    struct stat about;

    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return fail_with_errno("make the folder", path);
    if (lstat(path, &about) != 0)
        return fail_with_errno("look at", path);
    if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid())
        return command_fail(EXIT_FAILED, "%s is not a folder owned by this user; choose another one with --dir", path);
    if ((about.st_mode & 077) != 0 && chmod(path, 0700) != 0)
        return fail_with_errno("make private", path);
    return EXIT_DONE;
}

static int lock_home(struct dev_home *home)
{
    char path[PATH_MAX];

    if (!path_in(home, "lock", path))
        return too_long();
    home->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (home->lock < 0)
        return fail_with_errno("open", path);
    if (flock(home->lock, LOCK_EX | LOCK_NB) != 0)
        return command_fail(
            EXIT_FAILED,
            "another 'chatelaine dev' runs in %s; stop it, choose another --dir, or print its guide with --guide",
            home->path);
    return EXIT_DONE;
}

bool dev_home_is_in_use(const char *dir)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/lock", dir);

    if (length >= (int)sizeof path)
        return false;
    int lock = open(path, O_RDWR | O_CLOEXEC);
    if (lock < 0)
        return false;
    bool is_in_use = flock(lock, LOCK_EX | LOCK_NB) != 0;
    close(lock);
    return is_in_use;
}

static bool write_synced(int fd, struct text content)
{
    bool is_written = write(fd, content.ptr, content.len) == (ssize_t)content.len && fsync(fd) == 0;

    return close(fd) == 0 && is_written;
}

int dev_home_write(const struct dev_home *home, const char *path, struct text content)
{
    char temporary[PATH_MAX];

    if (!path_in(home, "new", temporary))
        return too_long();
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || !write_synced(fd, content) || rename(temporary, path) != 0)
        return fail_with_errno("write", path);
    return EXIT_DONE;
}

static int make_master_key(const struct dev_home *home)
{
    uint8_t master[KEYRING_MASTER_BYTES];
    struct buf out CLEANUP(buf_wipe) = BUF_FIXED(MASTER_KEY_TEXT_BYTES);

    if (access(home->master_key, F_OK) == 0)
        return EXIT_DONE;
    random_secret(master, sizeof master);
    encode_hex(&out, master, sizeof master);
    buf_append_char(&out, '\n');
    int code = dev_home_write(home, home->master_key, buf_text(&out));
    secure_wipe(master, sizeof master);
    return code;
}

void dev_password_make(char ret_password[DEV_PASSWORD_CHARS + 1])
{
    uint8_t random[PASSWORD_RANDOM_BYTES];
    struct buf out;

    random_secret(random, sizeof random);
    buf_init_fixed(&out, ret_password, DEV_PASSWORD_CHARS);
    encode_base64url(&out, random, sizeof random);
    CHECK(!out.failed && out.len == DEV_PASSWORD_CHARS);
    ret_password[DEV_PASSWORD_CHARS] = '\0';
    secure_wipe(random, sizeof random);
}

static bool take_field(const struct json *document, const char *name, char *ret_field, size_t bytes)
{
    const struct json *value = json_member(document, name);

    if (!value || json_type(value) != JSON_STRING || json_text(value).len >= bytes)
        return false;
    snprintf(ret_field, bytes, "%.*s", TEXT_ARG(json_text(value)));
    return true;
}

/* The ports and password of a cluster. Its servers know each other by their ports, so these must not change. */

bool dev_port_is_free(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

    CHECK(fd >= 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0); /* as Redis does */
    bool is_free = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return is_free;
}

static bool is_chosen(const struct dev_home *home, uint16_t port)
{
    for (unsigned i = 0; i < DEV_CLUSTER_SERVERS; i++)
        if (home->servers[i].port == port || home->servers[i].bus_port == port)
            return true;
    return false;
}

static uint16_t choose_port(const struct dev_home *home)
{
    uint16_t port;

    do
        port = (uint16_t)(PORT_FIRST + random_below(PORT_COUNT));
    while (is_chosen(home, port) || !dev_port_is_free(port));
    return port;
}

static int cluster_file_make(struct dev_home *home)
{
    struct buf out CLEANUP(buf_wipe) = BUF_UP_TO(FILE_MAX_BYTES);
    struct json_writer w = {.out = &out};

    dev_password_make(home->redis_password);
    json_object_begin(&w);
    json_put_member(&w, "password", text_of(home->redis_password));
    json_key_array(&w, "servers");
    for (unsigned i = 0; i < DEV_CLUSTER_SERVERS; i++) {
        struct dev_server *server = &home->servers[i];

        server->port = choose_port(home);
        server->bus_port = choose_port(home);
        json_object_begin(&w);
        json_put_number(&w, "port", server->port);
        json_put_number(&w, "bus_port", server->bus_port);
        json_object_end(&w);
    }
    json_array_end(&w);
    json_line_end(&w);
    return dev_home_write(home, home->cluster_file, buf_text(&out));
}

static bool take_port(const struct json *server, const char *name, uint16_t *ret_port)
{
    const struct json *value = json_member(server, name);
    int64_t port;

    if (!value || json_type(value) != JSON_NUMBER || !json_integer(value, &port) || port < 1 || port > UINT16_MAX)
        return false;
    *ret_port = (uint16_t)port;
    return true;
}

static bool take_servers(const struct json *document, struct dev_home *home)
{
    const struct json *list = json_member(document, "servers");
    unsigned count = 0;

    if (!list || json_type(list) != JSON_ARRAY)
        return false;
    for (const struct json *at = json_first(list); at; at = json_next(at), count++)
        if (count == DEV_CLUSTER_SERVERS || json_type(at) != JSON_OBJECT ||
            !take_port(at, "port", &home->servers[count].port) ||
            !take_port(at, "bus_port", &home->servers[count].bus_port))
            return false;
    return count == DEV_CLUSTER_SERVERS;
}

static int cluster_file_load(struct dev_home *home)
{
    struct buf why = BUF_FIXED(WHY_MAX_BYTES);
    struct buf content CLEANUP(buf_wipe) = BUF_UP_TO(FILE_MAX_BYTES);

    if (access(home->cluster_file, F_OK) != 0)
        return cluster_file_make(home);
    if (!secret_file_read(home->cluster_file, &content, &why))
        return command_fail(EXIT_FAILED, "%.*s", TEXT_ARG(buf_text(&why)));
    struct json *document = json_parse_object(buf_text(&content), NULL);
    bool is_whole = document && take_field(document, "password", home->redis_password, sizeof home->redis_password) &&
                    take_servers(document, home);
    json_free(document);
    return is_whole ? EXIT_DONE
                    : command_fail(EXIT_FAILED,
                                   "%s is damaged, so the cluster's ports and password are lost; choose another folder "
                                   "with --dir",
                                   home->cluster_file);
}

/* A name (FNV-1a) that is the same at each start, so that a Redis left behind by a crash is found again. */
static uint64_t name_of(const char *path)
{
    uint64_t hash = 14695981039346656037u;

    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 1099511628211u;
    return hash;
}

static void put_socket_url(const char *socket, struct buf *url)
{
    buf_append_str(url, "unix:");
    for (const char *c = socket; *c; c++) {
        if (*c == '%' || *c == '?' || *c == '#' || *c <= ' ')
            buf_printf(url, "%%%02X", (unsigned)(unsigned char)*c);
        else
            buf_append_char(url, *c);
    }
}

static void make_url(struct dev_home *home)
{
    struct buf url;

    buf_init_fixed(&url, home->redis_url, sizeof home->redis_url);
    if (!home->is_cluster)
        put_socket_url(home->servers[0].socket, &url);
    else
        buf_printf(&url, "redis-cluster://:%s@", home->redis_password);
    for (unsigned i = 0; home->is_cluster && i < home->server_count; i++)
        buf_printf(&url, "%s127.0.0.1:%u", i > 0 ? "," : "", (unsigned)home->servers[i].port);
    buf_append_char(&url, '\0');
    CHECK(!url.failed);
}

static int choose_socket(struct dev_home *home, const char *name, struct dev_server *server)
{
    int length = snprintf(server->socket, sizeof server->socket, "%s/%s.sock", home->path, name);

    if (length > 0 && (size_t)length < sizeof server->socket)
        return EXIT_DONE;
    snprintf(home->socket_folder, sizeof home->socket_folder, "/tmp/chatelaine-%u-%016llx", (unsigned)geteuid(),
             (unsigned long long)name_of(home->path));
    int code = make_private_folder(home->socket_folder);
    if (code != EXIT_DONE)
        return code;
    snprintf(server->socket, sizeof server->socket, "%s/%s.sock", home->socket_folder, name);
    LOG(LOG_INFO, "folder name too long for a socket, using another path", log_str("socket", server->socket));
    return EXIT_DONE;
}

static int choose_files(struct dev_home *home, const char *name, struct dev_server *server)
{
    char config[32], log[32];

    snprintf(config, sizeof config, "%s.conf", name);
    snprintf(log, sizeof log, "%s.log", name);
    if (!path_in(home, config, server->config) || !path_in(home, log, server->log))
        return too_long();
    return choose_socket(home, name, server);
}

static int choose_single_server(struct dev_home *home)
{
    home->server_count = 1;
    memcpy(home->servers[0].folder, home->path, sizeof home->path);
    return choose_files(home, "redis", &home->servers[0]);
}

static int choose_cluster_server(struct dev_home *home, unsigned number)
{
    struct dev_server *server = &home->servers[number];
    char name[16];

    home->server_count = number + 1;
    snprintf(name, sizeof name, "redis%u", number + 1);
    if (!path_in(home, name, server->folder))
        return too_long();
    int code = make_private_folder(server->folder);
    return code == EXIT_DONE ? choose_files(home, name, server) : code;
}

static int choose_servers(struct dev_home *home)
{
    int code = home->is_cluster ? cluster_file_load(home) : choose_single_server(home);

    for (unsigned i = 0; home->is_cluster && i < DEV_CLUSTER_SERVERS && code == EXIT_DONE; i++)
        code = choose_cluster_server(home, i);
    if (code == EXIT_DONE)
        make_url(home);
    return code;
}

/* One kind of folder cannot become the other: the data would be elsewhere. */
static int check_kind(const struct dev_home *home)
{
    char single[PATH_MAX];

    if (!path_in(home, "redis.conf", single))
        return too_long();
    if (home->is_cluster && access(single, F_OK) == 0)
        return command_fail(EXIT_USAGE,
                            "%s was made without --cluster; leave --cluster out, or choose another folder with --dir",
                            home->path);
    if (!home->is_cluster && access(home->cluster_file, F_OK) == 0)
        return command_fail(
            EXIT_USAGE, "%s was made with --cluster; add --cluster, or choose another folder with --dir", home->path);
    return EXIT_DONE;
}

int dev_home_open(struct dev_home *home, const char *dir, bool is_cluster)
{
    *home = (struct dev_home){.lock = -1, .is_cluster = is_cluster};
    int code = make_private_folder(dir);
    if (code != EXIT_DONE)
        return code;
    if (!realpath(dir, home->path))
        return fail_with_errno("find", dir);
    if (!path_in(home, "master.key", home->master_key) || !path_in(home, "totp.uri", home->totp_file) ||
        !path_in(home, "cluster.json", home->cluster_file) || !path_in(home, DEV_GUIDE_FILE, home->guide))
        return too_long();
    code = lock_home(home);
    if (code == EXIT_DONE)
        code = check_kind(home);
    if (code == EXIT_DONE)
        unlink(home->guide); /* its addresses may be out of date */
    if (code == EXIT_DONE)
        code = choose_servers(home);
    if (code == EXIT_DONE)
        code = make_master_key(home);
    return code;
}

void dev_home_close(struct dev_home *home)
{
    if (home->socket_folder[0]) {
        for (unsigned i = 0; i < home->server_count; i++)
            unlink(home->servers[i].socket);
        rmdir(home->socket_folder);
    }
    secure_wipe(home->redis_password, sizeof home->redis_password);
    secure_wipe(home->redis_url, sizeof home->redis_url);
    if (home->lock >= 0)
        close(home->lock);
    home->lock = -1;
}

bool dev_credentials_read(const struct dev_home *home, struct dev_credentials *ret_credentials)
{
    char path[PATH_MAX];
    struct buf why = BUF_FIXED(WHY_MAX_BYTES);
    struct buf content CLEANUP(buf_wipe) = BUF_UP_TO(FILE_MAX_BYTES);

    if (!path_in(home, "credentials.json", path) || !secret_file_read(path, &content, &why))
        return false;
    struct json *document = json_parse_object(buf_text(&content), NULL);
    bool is_whole = document && take_field(document, "email", ret_credentials->email, DEV_EMAIL_MAX_BYTES) &&
                    take_field(document, "password", ret_credentials->password, sizeof ret_credentials->password) &&
                    take_field(document, "totp_uri", ret_credentials->totp_uri, DEV_URI_MAX_BYTES);
    json_free(document);
    return is_whole;
}

int dev_credentials_write(const struct dev_home *home, const struct dev_credentials *credentials)
{
    char path[PATH_MAX];
    struct buf out CLEANUP(buf_wipe) = BUF_UP_TO(FILE_MAX_BYTES);
    struct json_writer w = {.out = &out};

    if (!path_in(home, "credentials.json", path))
        return too_long();
    json_object_begin(&w);
    json_put_member(&w, "email", text_of(credentials->email));
    json_put_member(&w, "password", text_of(credentials->password));
    json_put_member(&w, "totp_uri", text_of(credentials->totp_uri));
    json_line_end(&w);
    return dev_home_write(home, path, buf_text(&out));
}

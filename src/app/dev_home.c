#include "dev_home.h"

#include "base/encode.h"
#include "base/json.h"
#include "base/random.h"
#include "base/secure.h"
#include "config/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CREDENTIALS_MAX_BYTES = 4096, MASTER_KEY_TEXT_BYTES = 2 * KEYRING_MASTER_BYTES + 1 };

static int fail_with_errno(const char *what, const char *path)
{
    return command_fail(EXIT_FAILED, "cannot %s %s: %s", what, path, strerror(errno));
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
        return command_fail(EXIT_USAGE, "the name of --dir is too long");
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
        return command_fail(EXIT_USAGE, "the name of --dir is too long");
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || !write_synced(fd, content) || rename(temporary, path) != 0)
        return fail_with_errno("write", path);
    return EXIT_DONE;
}

static int make_master_key(const struct dev_home *home)
{
    uint8_t master[KEYRING_MASTER_BYTES];
    char storage[MASTER_KEY_TEXT_BYTES];
    struct buf out;

    if (access(home->master_key, F_OK) == 0)
        return EXIT_DONE;
    random_secret(master, sizeof master);
    buf_init_fixed(&out, storage, sizeof storage);
    encode_hex(&out, master, sizeof master);
    buf_append_char(&out, '\n');
    int code = dev_home_write(home, home->master_key, buf_text(&out));
    secure_wipe(master, sizeof master);
    secure_wipe(storage, sizeof storage);
    return code;
}

/* A name (FNV-1a) that is the same at each start, so that a Redis left behind by a crash is found again. */
static uint64_t name_of(const char *path)
{
    uint64_t hash = 14695981039346656037u;

    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 1099511628211u;
    return hash;
}

static void make_url(struct dev_home *home)
{
    struct buf url;

    buf_init_fixed(&url, home->redis_url, sizeof home->redis_url);
    buf_append_str(&url, "unix:");
    for (const char *c = home->socket; *c; c++) {
        if (*c == '%' || *c == '?' || *c == '#' || *c <= ' ')
            buf_printf(&url, "%%%02X", (unsigned)(unsigned char)*c);
        else
            buf_append_char(&url, *c);
    }
    buf_append_char(&url, '\0');
}

static int choose_socket(struct dev_home *home)
{
    int length = snprintf(home->socket, sizeof home->socket, "%s/redis.sock", home->path);

    if (length < 0 || (size_t)length >= sizeof home->socket) {
        snprintf(home->socket_folder, sizeof home->socket_folder, "/tmp/chatelaine-%u-%016llx", (unsigned)geteuid(),
                 (unsigned long long)name_of(home->path));
        int code = make_private_folder(home->socket_folder);
        if (code != EXIT_DONE)
            return code;
        snprintf(home->socket, sizeof home->socket, "%s/redis.sock", home->socket_folder);
        LOG(LOG_INFO, "folder name too long for a socket, using another path", log_str("socket", home->socket));
    }
    make_url(home);
    return EXIT_DONE;
}

int dev_home_open(struct dev_home *home, const char *dir)
{
    *home = (struct dev_home){.lock = -1};
    int code = make_private_folder(dir);
    if (code != EXIT_DONE)
        return code;
    if (!realpath(dir, home->path))
        return fail_with_errno("find", dir);
    if (!path_in(home, "master.key", home->master_key) || !path_in(home, "totp.uri", home->totp_file) ||
        !path_in(home, "redis.conf", home->redis_config) || !path_in(home, "redis.log", home->redis_log) ||
        !path_in(home, DEV_GUIDE_FILE, home->guide))
        return command_fail(EXIT_USAGE, "the name of --dir is too long");
    code = lock_home(home);
    if (code == EXIT_DONE)
        unlink(home->guide); /* its addresses may be out of date */
    if (code == EXIT_DONE)
        code = choose_socket(home);
    if (code == EXIT_DONE)
        code = make_master_key(home);
    return code;
}

void dev_home_close(struct dev_home *home)
{
    if (home->socket_folder[0]) {
        unlink(home->socket);
        rmdir(home->socket_folder);
    }
    if (home->lock >= 0)
        close(home->lock);
    home->lock = -1;
}

static bool take_field(const struct json *document, const char *name, char *ret_field, size_t bytes)
{
    const struct json *value = json_member(document, name);

    if (!value || json_type(value) != JSON_STRING || json_text(value).len >= bytes)
        return false;
    snprintf(ret_field, bytes, "%.*s", TEXT_ARG(json_text(value)));
    return true;
}

bool dev_credentials_read(const struct dev_home *home, struct dev_credentials *ret_credentials)
{
    char path[PATH_MAX], why_storage[512];
    struct buf why, content CLEANUP(buf_wipe);

    buf_init(&content, CREDENTIALS_MAX_BYTES);
    buf_init_fixed(&why, why_storage, sizeof why_storage);
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
    struct buf out CLEANUP(buf_wipe);
    struct json_writer w = {.out = &out};

    buf_init(&out, CREDENTIALS_MAX_BYTES);
    if (!path_in(home, "credentials.json", path))
        return command_fail(EXIT_USAGE, "the name of --dir is too long");
    json_object_begin(&w);
    json_put_member(&w, "email", text_of(credentials->email));
    json_put_member(&w, "password", text_of(credentials->password));
    json_put_member(&w, "totp_uri", text_of(credentials->totp_uri));
    json_object_end(&w);
    buf_append_char(&out, '\n');
    return dev_home_write(home, path, buf_text(&out));
}

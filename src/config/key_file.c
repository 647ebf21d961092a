#include "config/key_file.h"

#include "base/secure.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A master key is at most 64 digits; the rest is room for white space. */
enum { MASTER_LINE_MAX_BYTES = 256, MASTER_FILE_MAX_BYTES = KEYRING_MAX_GENERATIONS * MASTER_LINE_MAX_BYTES };

static void close_fd(const int *fd)
{
    if (*fd > STDERR_FILENO)
        close(*fd);
}

const char *key_file_validate(const char *path, mode_t mode, uid_t owner, uid_t reader)
{
    if (!S_ISREG(mode))
        return "it is not a regular file";
    if (mode & (S_IWGRP | S_IWOTH))
        return "others can write to it; run chmod 0400 on it";
    if (text_starts_with(text_of(path), TEXT("/run/secrets/")))
        return NULL;
    if (owner != reader && owner != 0)
        return "another user owns it; give it to the user that runs this program (chown)";
    if (mode & S_IROTH)
        return "every user of this machine can read it; run chmod 0400 on it";
    if ((mode & S_IRGRP) && (owner != 0 || reader == 0))
        return "its group can read it; run chmod 0400 on it";
    return NULL;
}

static bool read_all(int fd, struct buf *ret_content)
{
    ssize_t got;

    do {
        char *room = buf_reserve(ret_content, 1);
        if (!room)
            return false;
        got = read(fd, room, ret_content->capacity - ret_content->len);
        if (got > 0)
            ret_content->len += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    return got == 0;
}

static bool read_opened(int fd, const char *path, struct buf *ret_content, struct buf *ret_why)
{
    errno = 0;
    if (!read_all(fd, ret_content)) {
        if (ret_content->failed)
            buf_printf(ret_why, "%s is too long", path);
        else
            buf_printf(ret_why, "cannot read %s: %s", path, strerror(errno));
        return false;
    }
    if (ret_content->len > 0 && ret_content->ptr[ret_content->len - 1] == '\n')
        ret_content->len--;
    if (ret_content->len > 0 && ret_content->ptr[ret_content->len - 1] == '\r')
        ret_content->len--;
    return true;
}

/* What editors put in front of a text. It is not part of any secret, and every reader would stumble over it. */
bool secret_file_is_plain(struct text content, const char *path, struct buf *ret_why)
{
    if (text_starts_with(content, TEXT("\xef\xbb\xbf")))
        buf_printf(ret_why, "%s begins with a byte-order mark: save it as UTF-8 without one", path);
    else if (text_starts_with(content, TEXT("\xff\xfe")) || text_starts_with(content, TEXT("\xfe\xff")))
        buf_printf(ret_why, "%s is UTF-16: save it as UTF-8", path);
    else
        return true;
    return false;
}

static bool is_quoted(struct text content)
{
    char first = content.len >= 2 ? content.ptr[0] : '\0';

    return (first == '"' || first == '\'') && content.ptr[content.len - 1] == first;
}

/* "NAME=", as in files of variables. */
static bool begins_with_name(struct text content)
{
    size_t length = text_starts_with(content, TEXT("export ")) ? strlen("export ") : 0, from = length;

    while (length < content.len &&
           ((content.ptr[length] >= 'A' && content.ptr[length] <= 'Z') || content.ptr[length] == '_' ||
            (length > from && content.ptr[length] >= '0' && content.ptr[length] <= '9')))
        length++;
    return length > from && length < content.len && content.ptr[length] == '=';
}

bool secret_file_is_dressed(struct text content, const char *path, struct buf *ret_why)
{
    bool is_named = begins_with_name(content);

    if (is_named || is_quoted(content))
        buf_printf(ret_why, "%s must hold the value alone, %s", path,
                   is_named ? "without NAME= in front" : "without quotes");
    return is_named || is_quoted(content);
}

bool whole_file_read(const char *path, struct buf *ret_content, struct buf *ret_why)
{
    int fd CLEANUP(close_fd) = STDIN_FILENO;

    if (text_equal(text_of(path), TEXT("-")))
        return read_opened(fd, "standard input", ret_content, ret_why);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        buf_printf(ret_why, "cannot open %s: %s", path, strerror(errno));
        return false;
    }
    return read_opened(fd, path, ret_content, ret_why);
}

bool secret_file_read(const char *path, struct buf *ret_content, struct buf *ret_why)
{
    return whole_file_read(path, ret_content, ret_why) && secret_file_is_plain(buf_text(ret_content), path, ret_why);
}

bool private_file_read(const char *option, const char *path, struct buf *ret_content, struct buf *ret_why)
{
    struct stat about;
    int fd CLEANUP(close_fd) = STDIN_FILENO;

    if (text_equal(text_of(path), TEXT("-")))
        return read_opened(fd, "standard input", ret_content, ret_why);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &about) != 0) {
        buf_printf(ret_why, "cannot open %s %s: %s", option, path, strerror(errno));
        return false;
    }
    const char *unfit = S_ISREG(about.st_mode) ? key_file_validate(path, about.st_mode, about.st_uid, geteuid()) : NULL;
    if (unfit) {
        buf_printf(ret_why, "%s %s is refused: %s", option, path, unfit);
        return false;
    }
    return read_opened(fd, path, ret_content, ret_why);
}

static bool read_master_file(const char *option, const char *path, struct buf *ret_content, struct buf *ret_why)
{
    struct stat about;
    int fd CLEANUP(close_fd) = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &about) != 0) {
        bool is_missing = errno == ENOENT && strcmp(option, "--master-key-file") == 0;
        buf_printf(ret_why, "cannot open %s %s: %s", option, path, strerror(errno));
        if (is_missing)
            buf_append_str(ret_why, "; copy it from another node, or make it for the first one with 'chatelaine "
                                    "master-key --write'");
        return false;
    }
    const char *unfit = key_file_validate(path, about.st_mode, about.st_uid, geteuid());
    if (unfit) {
        buf_printf(ret_why, "%s %s is refused: %s", option, path, unfit);
        return false;
    }
    return read_opened(fd, path, ret_content, ret_why) && secret_file_is_plain(buf_text(ret_content), path, ret_why);
}

/* One key per line; blank lines are skipped. 0: a line is not a key, or there are more than keys_max. */
static size_t parse_masters(struct text content, size_t keys_max, uint8_t (*ret_masters)[KEYRING_MASTER_BYTES])
{
    struct text line;
    size_t count = 0;

    while (text_next(&content, '\n', &line)) {
        if (line.len > 0 && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (text_trim(line).len == 0)
            continue;
        if (count == keys_max || !keyring_parse_master(line, ret_masters[count]))
            return 0;
        count++;
    }
    return count;
}

/* Returns how many keys were read; 0 on failure, with one sentence in ret_why. */
static size_t read_masters(const char *option, const char *path, size_t keys_max,
                           uint8_t (*ret_masters)[KEYRING_MASTER_BYTES], struct buf *ret_why)
{
    char storage[MASTER_FILE_MAX_BYTES];
    struct buf content;
    size_t count = 0;

    buf_init_fixed(&content, storage, keys_max * MASTER_LINE_MAX_BYTES);
    bool is_read = read_master_file(option, path, &content, ret_why);
    if (is_read)
        count = parse_masters(buf_text(&content), keys_max, ret_masters);
    bool is_dressed = is_read && count == 0 && secret_file_is_dressed(buf_text(&content), path, ret_why);
    secure_wipe(storage, sizeof storage);
    if (is_dressed)
        return 0;
    if (is_read && count == 0 && keys_max == 1)
        buf_printf(ret_why, "%s %s holds no master key: it must be 32 bytes as 64 hex digits or as base64", option,
                   path);
    else if (is_read && count == 0)
        buf_printf(ret_why,
                   "%s %s must hold 1 to %zu master keys, one per line, each 32 bytes as 64 hex digits or as base64",
                   option, path, keys_max);
    return count;
}

struct keyring *key_file_load(const struct settings *settings, struct buf *ret_why)
{
    uint8_t masters[KEYRING_MAX_GENERATIONS][KEYRING_MASTER_BYTES];
    const char *others = settings->retired_master_key_file;
    struct keyring *keyring = NULL;
    size_t retired = 0;

    if (!settings->master_key_file) {
        buf_append_str(ret_why, "no master key: make one with 'chatelaine master-key --write FILE' and give "
                                "--master-key-file FILE");
        return NULL;
    }
    bool is_read = read_masters("--master-key-file", settings->master_key_file, 1, masters, ret_why) == 1;
    if (is_read && others) {
        retired = read_masters("--retired-master-key-file", others, KEYRING_MAX_GENERATIONS - 1, masters + 1, ret_why);
        is_read = retired > 0;
    }
    if (is_read)
        keyring = keyring_create((const uint8_t(*)[KEYRING_MASTER_BYTES])masters, 1 + retired);
    secure_wipe(masters, sizeof masters);
    return keyring;
}

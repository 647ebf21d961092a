#include "auth/revocation_log.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEDULED "scheduled"
#define WITHDRAWN "withdrawn"

#define STORE "store="

enum { STORE_MAX_CHARS = 64 };
/* A newline first if one is missing, two times, a word, two ids, a store, the blanks between them, the newline. */
enum {
    LINE_MAX_BYTES = 2 * CLOCK_RFC3339_BYTES + 2 * ID_TEXT_BYTES + sizeof SCHEDULED + sizeof STORE + STORE_MAX_CHARS + 8
};

struct revocation_log {
    char *path;
    int fd;
    bool is_torn; /* the file does not end with a newline: a crash or a full disk cut its last line */
};

/* Only a regular file can be inspected; a pipe has no partial line. */
static bool ends_torn(int fd)
{
    struct stat about;
    char last;

    return fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0 &&
           pread(fd, &last, 1, about.st_size - 1) == 1 && last != '\n';
}

bool revocation_log_reopen(struct revocation_log *log, struct buf *ret_why)
{
    /* Readable for ends_torn(). Non-blocking, because a pipe that nobody reads must not stop the loop. */
    int fd = open(log->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, S_IRUSR | S_IWUSR);

    if (fd < 0) {
        buf_printf(ret_why, "cannot open the revocation log %s: %s", log->path, strerror(errno));
        return false;
    }
    if (log->fd >= 0)
        close(log->fd);
    log->fd = fd;
    log->is_torn = ends_torn(fd);
    return true;
}

struct revocation_log *revocation_log_open(const char *path, struct buf *ret_why)
{
    struct revocation_log *log = mem_alloc(sizeof *log);

    log->path = mem_copy_text(path, strlen(path));
    log->fd = -1;
    if (revocation_log_reopen(log, ret_why))
        return log;
    revocation_log_close(log);
    return NULL;
}

void revocation_log_close(struct revocation_log *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    free(log->path);
    free(log);
}

static void put_time(struct buf *line, int64_t ms)
{
    char time[CLOCK_RFC3339_BYTES];

    clock_print_rfc3339(ms, time);
    buf_append_str(line, time);
}

static void line_begin(const struct revocation_log *log, struct buf *line, char storage[LINE_MAX_BYTES], int64_t ms)
{
    buf_init_fixed(line, storage, LINE_MAX_BYTES);
    if (log->is_torn)
        buf_append_char(line, '\n');
    put_time(line, ms);
    buf_append_char(line, ' ');
}

static int line_end(struct revocation_log *log, struct buf *line, struct text store)
{
    ssize_t written;

    if (store.len > 0 && store.len <= STORE_MAX_CHARS)
        buf_printf(line, " " STORE "%.*s", TEXT_ARG(store));
    buf_append_char(line, '\n');
    do
        written = write(log->fd, line->ptr, line->len);
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return errno;
    log->is_torn = (size_t)written < line->len && (written > 0 || log->is_torn);
    return (size_t)written < line->len ? ENOSPC : 0;
}

int revocation_log_append(struct revocation_log *log, const struct key_record *key, struct text store)
{
    char storage[LINE_MAX_BYTES];
    struct buf line;

    line_begin(log, &line, storage, key->revoked_ms);
    buf_printf(&line, "%s %s", key->id.text, key->account.text);
    return line_end(log, &line, store);
}

int revocation_log_append_end(struct revocation_log *log, const struct key_record *key, int64_t said_ms,
                              struct text store)
{
    char storage[LINE_MAX_BYTES];
    struct buf line;

    line_begin(log, &line, storage, said_ms);
    buf_printf(&line, "%s %s %s", key->ends_ms > 0 ? SCHEDULED : WITHDRAWN, key->id.text, key->account.text);
    if (key->ends_ms > 0) {
        buf_append_char(&line, ' ');
        put_time(&line, key->ends_ms);
    }
    return line_end(log, &line, store);
}

static bool next_time(struct text *line, int64_t *ret_ms)
{
    struct text time;

    return text_next(line, ' ', &time) && time.len == CLOCK_RFC3339_BYTES - 1 && clock_read_rfc3339(time, ret_ms);
}

static bool next_key(struct text *line, struct id *ret_key)
{
    struct text id;

    return text_next(line, ' ', &id) && (id_parse(ID_KEY, id, ret_key) || id_parse(ID_DEVICE, id, ret_key));
}

/* A line may be cut, and those of 0.3 end with the account. */
static void read_owner(struct text rest, struct revocation_line *ret_line)
{
    struct text part;

    if (!text_next(&rest, ' ', &part) || !id_parse(ID_ACCOUNT, part, &ret_line->account))
        return;
    while (text_next(&rest, ' ', &part))
        if (text_starts_with(part, TEXT(STORE)))
            ret_line->store = text_skip(part, sizeof STORE - 1);
}

bool revocation_log_read(struct text line, struct revocation_line *ret_line)
{
    struct text rest, word, account;

    *ret_line = (struct revocation_line){.what = REVOCATION_DONE};
    if (!next_time(&line, &ret_line->at_ms))
        return false;
    rest = line;
    if (next_key(&rest, &ret_line->key)) {
        read_owner(rest, ret_line);
        return true;
    }
    if (!text_next(&line, ' ', &word) || !next_key(&line, &ret_line->key))
        return false;
    read_owner(line, ret_line);
    ret_line->what = text_equal(word, TEXT(SCHEDULED)) ? REVOCATION_SCHEDULED : REVOCATION_WITHDRAWN;
    if (ret_line->what == REVOCATION_WITHDRAWN)
        return text_equal(word, TEXT(WITHDRAWN));
    return text_next(&line, ' ', &account) && next_time(&line, &ret_line->ends_ms);
}

#include "auth/revocation_log.h"

#include "base/append_file.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/loss.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "revocation log"

#define SCHEDULED "scheduled"
#define WITHDRAWN "withdrawn"

#define STORE "store="

enum { STORE_MAX_CHARS = 64, TROUBLE_BYTES = 256, TROUBLE_PAUSE_MS = 10000 };
/* A newline first if one is missing, two times, a word, two ids, a store, the blanks between them, the newline. */
enum {
    LINE_MAX_BYTES = 2 * CLOCK_RFC3339_BYTES + 2 * ID_TEXT_BYTES + sizeof SCHEDULED + sizeof STORE + STORE_MAX_CHARS + 8
};

/* Some 8,000 lines. */
enum { WAITING_MAX_BYTES = 1024 * 1024 };

struct revocation_log {
    char *path;
    int fd;
    off_t size;         /* bytes that must be in the file */
    bool is_torn;       /* the file does not end with a newline: a crash or a full disk cut its last line */
    struct buf waiting; /* lines that could not be written yet */
    int64_t unwritten;  /* their number, and of those for which there was no room */
    int error;          /* why the last line could not be written, or the file not be opened again; 0: it could */
    int looked;         /* the same, at the last look */
    char trouble[TROUBLE_BYTES];
    struct log_pause pause;
};

/* Only a regular file can be inspected; a pipe has no partial line. */
static bool ends_torn(int fd, off_t size)
{
    struct stat about;
    char last;

    return fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && size > 0 && pread(fd, &last, 1, size - 1) == 1 &&
           last != '\n';
}

static void begin_in(struct revocation_log *log, int fd)
{
    if (log->fd >= 0 && log->fd != fd)
        close(log->fd);
    log->fd = fd;
    (void)append_file_look(log->path, fd, 0, &log->size);
    log->is_torn = ends_torn(fd, log->size);
}

struct revocation_log *revocation_log_open(const char *path, struct buf *ret_why)
{
    struct revocation_log *log;
    int fd = append_file_open(path, FILE_NAME, false, ret_why);

    if (fd < 0)
        return NULL;
    log = mem_alloc(sizeof *log);
    log->path = mem_copy_text(path, strlen(path));
    log->fd = -1;
    buf_init(&log->waiting, WAITING_MAX_BYTES);
    begin_in(log, fd);
    return log;
}

/* Another node may share the file, and each tells the loss. */
static void tell_loss(struct revocation_log *log, off_t left)
{
    if (log->size == 0)
        return;
    LOSS_TELL(LOSS_REVOCATION_LOG, log_str("path", log->path), log_int("bytes", log->size - left));
    log->size = 0;
}

/* Goes on in what is at the path now. 0, or an errno. */
static int follow_path(struct revocation_log *log)
{
    struct buf why = BUF_FIXED(TROUBLE_BYTES);
    off_t bytes;
    enum append_fate fate = append_file_look(log->path, log->fd, log->size, &bytes);
    int fd = log->fd;

    if (fate == APPEND_THERE) {
        log->size = bytes;
        return 0;
    }
    if (fate != APPEND_MOVED)
        tell_loss(log, fate == APPEND_CUT ? bytes : 0);
    if (fate != APPEND_CUT && (fd = append_file_open(log->path, FILE_NAME, false, &why)) < 0)
        return errno;
    begin_in(log, fd);
    if (fate != APPEND_CUT)
        LOG(LOG_INFO, "revocation log reopened", log_str("path", log->path));
    return 0;
}

/* 0, or an errno. In one write, in which a newline ends what was torn. */
static int write_line(struct revocation_log *log, struct text line)
{
    struct buf bytes = BUF_FIXED(LINE_MAX_BYTES);
    ssize_t written;

    REQUIRE(line.len > 0 && line.ptr[line.len - 1] == '\n');
    if (log->is_torn)
        buf_append_char(&bytes, '\n');
    buf_append_text(&bytes, line);
    ENSURE(!bytes.failed); /* a line that names less than was revoked is worse than none */
    do
        written = write(log->fd, bytes.ptr, bytes.len);
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return errno;
    log->size += written;
    log->is_torn = (size_t)written < bytes.len && (written > 0 || log->is_torn);
    return (size_t)written < bytes.len ? ENOSPC : 0;
}

/* Writes what waits, as far as it can be written. */
static int write_waiting(struct revocation_log *log)
{
    struct text rest = buf_text(&log->waiting), line;
    size_t written = 0;
    int error = follow_path(log);

    while (error == 0 && written < log->waiting.len && text_next(&rest, '\n', &line)) {
        error = write_line(log, (struct text){line.ptr, line.len + 1});
        if (error == 0) {
            written += line.len + 1;
            log->unwritten--;
        }
    }
    buf_consume(&log->waiting, written);
    metric_set(METRIC_REVOCATION_LOG_UNWRITTEN, log->unwritten);
    return error;
}

void revocation_log_close(struct revocation_log *log)
{
    if (!log)
        return;
    if (log->waiting.len > 0)
        (void)write_waiting(log);
    close(log->fd);
    buf_finish(&log->waiting);
    free(log->path);
    free(log);
}

void revocation_log_look(struct revocation_log *log)
{
    int before = log->looked;

    log->looked = log->error = write_waiting(log);
    if (log->error == 0 && before != 0)
        LOG(LOG_INFO, "the revocation log can be written again", log_str("path", log->path));
    if (log->error != 0 &&
        (before == 0 || log_pause_is_over(&log->pause, clock_boot_ns() / CLOCK_NS_PER_MS, TROUBLE_PAUSE_MS)))
        LOG(LOG_ERROR, LOSSES[LOSS_REVOCATION_LINES].message, log_str("path", log->path),
            log_int("lines", log->unwritten), log_str("why", strerror(log->error)));
}

const char *revocation_log_trouble(struct revocation_log *log)
{
    if (log->error == 0)
        return NULL;
    snprintf(log->trouble, sizeof log->trouble, "The revocation log cannot be written: %s.", strerror(log->error));
    return log->trouble;
}

static void put_time(struct buf *line, int64_t ms)
{
    char time[CLOCK_RFC3339_BYTES];

    clock_print_rfc3339(ms, time);
    buf_append_str(line, time);
}

static void line_begin(struct buf *line, char storage[LINE_MAX_BYTES], int64_t ms)
{
    buf_init_fixed(line, storage, LINE_MAX_BYTES);
    put_time(line, ms);
    buf_append_char(line, ' ');
}

/* Behind those that wait, which name earlier endings. */
static int line_end(struct revocation_log *log, struct buf *line, struct text store)
{
    if (store.len > 0 && store.len <= STORE_MAX_CHARS)
        buf_printf(line, " " STORE "%.*s", TEXT_ARG(store));
    buf_append_char(line, '\n');
    log->unwritten++;
    if (log->waiting.len + line->len > WAITING_MAX_BYTES)
        log->error = write_waiting(log);
    if (log->waiting.len + line->len > WAITING_MAX_BYTES)
        return log->error;
    buf_append_text(&log->waiting, buf_text(line));
    log->error = write_waiting(log);
    return log->error;
}

int revocation_log_append(struct revocation_log *log, const struct key_record *key, struct text store)
{
    char storage[LINE_MAX_BYTES];
    struct buf line;

    line_begin(&line, storage, key->revoked_ms);
    buf_printf(&line, "%s %s", key->id.text, key->account.text);
    return line_end(log, &line, store);
}

int revocation_log_append_end(struct revocation_log *log, const struct key_record *key, int64_t said_ms,
                              struct text store)
{
    char storage[LINE_MAX_BYTES];
    struct buf line;

    line_begin(&line, storage, said_ms);
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

#include "store/audit_log.h"

#include "base/background.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROUP_MAX_BYTES = 4 * 1024 * 1024, END_MAX_BYTES = 1024 * 1024, WHY_BYTES = 256 };

/* A line that waits for its sync. */
struct waiter {
    struct list node;
    struct buf body;
    bool is_event; /* not a line about chains */
    audit_logged *done;
    void *arg;
};

struct audit_log {
    struct background background; /* first: on_written() gets it */
    uv_loop_t *loop;
    struct audit_log_settings settings;
    char *path;
    char node[AUDIT_NODE_BYTES];
    int fd, next_fd; /* next_fd: a file to go on in; -1: none */

    struct audit_head head;      /* of what is synced; seq 0: the chain has no line yet */
    uint64_t event_seq;          /* of the last event among it */
    struct audit_head next_head; /* of what is being written */
    uint64_t next_event_seq;
    bool is_new_file; /* its first line will name the chain */
    size_t torn;      /* bytes behind the last line that is ours: an unfinished one */
    bool needs_newline;
    off_t size; /* after the last sync */

    struct list waiting, writing; /* struct waiter */
    struct buf out;               /* what is being written */
    int error;                    /* of the thread: an errno, or 0 */
    bool is_writing, must_read_end, is_closing;
    bool is_hung; /* what is being written takes too long, and whoever waited for it was told */
    uv_timer_t patience;
    char trouble[WHY_BYTES]; /* empty: none */
    struct log_pause trouble_pause;
    uv_idle_t idle; /* starts the next group in the next turn, so that it is complete */
    void (*synced)(void *arg);
    void *synced_arg;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* The file's end */

/* Finds the last genuine line in the file's last bytes; its newline may be missing. False if there is none. *ret_after:
 * bytes behind it. */
static bool find_last_line(struct audit_log *log, struct text end, struct audit_line_read *ret_line, size_t *ret_after)
{
    size_t total = end.len, line_end = end.len;

    while (line_end > 0) {
        const char *newline = memrchr(end.ptr, '\n', line_end);
        size_t from = newline ? (size_t)(newline - end.ptr) + 1 : 0;
        struct text line = {end.ptr + from, line_end - from};

        if (line.len > 0 && audit_line_read(log->settings.keyring, line, ret_line) == AUDIT_LINE_GENUINE) {
            *ret_after = total - line_end - (line_end < total);
            return true;
        }
        line_end = from > 0 ? from - 1 : 0;
    }
    return false;
}

static bool read_at(int fd, off_t from, struct buf *ret_bytes, size_t count)
{
    char *room = buf_reserve(ret_bytes, count);

    while (room && ret_bytes->len < count) {
        ssize_t got = pread(fd, ret_bytes->ptr + ret_bytes->len, count - ret_bytes->len, from + (off_t)ret_bytes->len);

        if (got <= 0)
            return false;
        ret_bytes->len += (size_t)got;
    }
    return room;
}

static bool has_chain(const struct audit_log *log)
{
    return log->head.chain[0] != '\0';
}

/* The last genuine line of the file is known. After a failed write, lines that were not confirmed may stand there. */
static void go_on_after(struct audit_log *log, const struct audit_head *last)
{
    bool is_ours = !has_chain(log) || strcmp(last->chain, log->head.chain) == 0;

    log->is_new_file = !is_ours;
    if (is_ours && last->seq > log->head.seq) {
        log->head = *last;
        log->event_seq = last->seq;
    }
}

/* Nothing in the file is known as ours. That does not end the log, and the verifier tells. */
static void begin_in_file(struct audit_log *log)
{
    log->is_new_file = true;
    if (has_chain(log))
        return;
    if (log->size > 0)
        LOG(LOG_ERROR, "the audit log's end was not written by this node, or with another master key: a chain begins",
            log_str("path", log->path));
    audit_head_begin(&log->head);
}

/* Learns where the chain goes on. False: the file cannot be read. */
static bool read_end(struct audit_log *log)
{
    struct buf end CLEANUP(buf_finish) = {0};
    struct audit_line_read last;
    struct stat about;
    size_t count;

    if (fstat(log->fd, &about) != 0)
        return false;
    log->size = about.st_size;
    count = about.st_size < END_MAX_BYTES ? (size_t)about.st_size : END_MAX_BYTES;
    log->torn = count;
    buf_init(&end, END_MAX_BYTES);
    if (count > 0 && !read_at(log->fd, about.st_size - (off_t)count, &end, count))
        return false;
    log->needs_newline = count > 0 && end.ptr[count - 1] != '\n';
    if (find_last_line(log, buf_text(&end), &last, &log->torn))
        go_on_after(log, &last.head);
    else
        begin_in_file(log);
    return true;
}

/* Opening */

/* So that the file's name survives a power cut. */
static bool sync_folder(const char *path)
{
    char *copy = mem_copy_text(path, strlen(path));
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    free(copy);
    return is_synced;
}

/* -1 on failure, with one sentence in ret_why. */
static int open_file(const char *path, struct buf *ret_why)
{
    struct stat about;
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, S_IRUSR | S_IWUSR);

    if (fd < 0) {
        buf_printf(ret_why, "cannot open the audit log %s: %s", path, strerror(errno));
        return -1;
    }
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        buf_printf(ret_why, "the audit log %s must be a regular file", path);
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        buf_printf(ret_why, "the audit log %s is in use by another node: give each node a file of its own", path);
    else if (about.st_size == 0 && !sync_folder(path))
        buf_printf(ret_why, "cannot sync the folder of the audit log %s: %s", path, strerror(errno));
    else
        return fd;
    close(fd);
    return -1;
}

static void on_idle(uv_idle_t *idle);

struct audit_log *audit_log_open(uv_loop_t *loop, const struct audit_log_settings *settings, struct buf *ret_why)
{
    struct audit_log *log;
    int fd = open_file(settings->path, ret_why);

    if (fd < 0)
        return NULL;
    log = mem_alloc(sizeof *log);
    log->loop = loop;
    log->settings = *settings;
    log->path = mem_copy_text(settings->path, strlen(settings->path));
    log->fd = fd;
    log->next_fd = -1;
    audit_log_name(log, "unnamed");
    list_init(&log->waiting);
    list_init(&log->writing);
    buf_init(&log->out, GROUP_MAX_BYTES + 2 * (size_t)AUDIT_LINE_MAX_BYTES);
    CHECK(uv_idle_init(loop, &log->idle) == 0);
    CHECK(uv_timer_init(loop, &log->patience) == 0);
    log->idle.data = log->patience.data = log;
    if (!read_end(log)) {
        buf_printf(ret_why, "cannot read the audit log %s: %s", settings->path, strerror(errno));
        audit_log_close(log, NULL, NULL);
        return NULL;
    }
    return log;
}

void audit_log_name(struct audit_log *log, const char *node)
{
    snprintf(log->node, sizeof log->node, "%s", node);
}

void audit_log_watch(struct audit_log *log, void (*synced)(void *arg), void *arg)
{
    log->synced = synced;
    log->synced_arg = arg;
}

/* Closing */

static void on_idle_closed(uv_handle_t *idle)
{
    struct audit_log *log = idle->data;
    void (*closed)(void *arg) = log->closed;
    void *arg = log->closed_arg;

    close(log->fd);
    if (log->next_fd >= 0)
        close(log->next_fd);
    buf_finish(&log->out);
    free(log->path);
    free(log);
    if (closed)
        closed(arg);
}

static void on_patience_closed(uv_handle_t *patience)
{
    struct audit_log *log = patience->data;

    uv_close((uv_handle_t *)&log->idle, on_idle_closed);
}

static void close_handles(struct audit_log *log)
{
    uv_close((uv_handle_t *)&log->patience, on_patience_closed);
}

void audit_log_close(struct audit_log *log, void (*closed)(void *arg), void *arg)
{
    CHECK(!log->is_closing && list_empty(&log->waiting));
    log->is_closing = true;
    log->closed = closed;
    log->closed_arg = arg;
    if (!log->is_writing)
        close_handles(log);
}

/* Writing */

static void begin_group(struct audit_log *log);
static void fail_waiting(struct audit_log *log);

static void on_idle(uv_idle_t *idle)
{
    struct audit_log *log = idle->data;

    CHECK(uv_idle_stop(idle) == 0);
    if (log->is_hung)
        fail_waiting(log);
    else if (!log->is_writing && !list_empty(&log->waiting))
        begin_group(log);
}

static void wake(struct audit_log *log)
{
    if (!log->is_writing || log->is_hung)
        CHECK(uv_idle_start(&log->idle, on_idle) == 0);
}

void audit_log_append(struct audit_log *log, const struct audit_line *line, audit_logged *done, void *arg)
{
    struct waiter *waiter = mem_alloc(sizeof *waiter);
    struct audit_line mine = *line;

    CHECK(!log->is_closing);
    mine.node = text_of(log->node);
    waiter->done = done;
    waiter->arg = arg;
    waiter->is_event = !text_starts_with(line->type, TEXT("log."));
    buf_init(&waiter->body, AUDIT_LINE_MAX_BYTES);
    audit_body_print(&mine, &waiter->body);
    CHECK(!waiter->body.failed);
    list_append(&log->waiting, &waiter->node);
    wake(log);
}

/* A line about the chain itself. */
static void print_own(struct audit_log *log, const char *type, const char *name, const char *value)
{
    struct audit_line line = {.time_ms = clock_wall_ms(), .node = text_of(log->node), .type = text_of(type)};
    struct buf body CLEANUP(buf_finish) = {0};

    if (name) {
        line.data[0] = (struct audit_line_datum){text_of(name), text_of(value)};
        line.data_count = 1;
    }
    buf_init(&body, AUDIT_LINE_MAX_BYTES);
    audit_body_print(&line, &body);
    audit_line_print(log->settings.keyring, buf_text(&body), &log->next_head, &log->out);
}

/* What must stand in front of the next line. */
static void print_opening(struct audit_log *log)
{
    char bytes[24];

    if (log->needs_newline)
        buf_append_char(&log->out, '\n');
    snprintf(bytes, sizeof bytes, "%zu", log->torn);
    if (log->torn > 0 && !log->is_new_file)
        print_own(log, AUDIT_LINE_TORN, "bytes", bytes);
    if (log->is_new_file && log->next_head.seq == 0)
        print_own(log, AUDIT_LINE_BEGAN, NULL, NULL);
    else if (log->is_new_file)
        print_own(log, AUDIT_LINE_CONTINUED, NULL, NULL);
}

static void take_waiting(struct audit_log *log)
{
    struct list *node;

    while ((node = list_first(&log->waiting)) && log->out.len < GROUP_MAX_BYTES) {
        struct waiter *waiter = LIST_ENTRY(node, struct waiter, node);

        list_remove(node);
        list_append(&log->writing, node);
        audit_line_print(log->settings.keyring, buf_text(&waiter->body), &log->next_head, &log->out);
        if (waiter->is_event)
            log->next_event_seq = log->next_head.seq;
    }
    CHECK(!log->out.failed);
}

/* On its thread. */
static void write_and_sync(struct background *background)
{
    struct audit_log *log = (struct audit_log *)background;
    size_t done = 0;

    log->error = 0;
    while (done < log->out.len && log->error == 0) {
        ssize_t written = write(log->fd, log->out.ptr + done, log->out.len - done);

        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            log->error = written == 0 ? ENOSPC : errno;
    }
    if (log->error == 0 && fdatasync(log->fd) != 0)
        log->error = errno;
}

/* Somebody else wrote to the file, or cut it: the chain goes on, and the verifier tells. */
static void watch_size(struct audit_log *log)
{
    struct stat about;

    if (fstat(log->fd, &about) != 0 || about.st_size == log->size)
        return;
    LOG(LOG_ERROR, "somebody else wrote to the audit log, or cut it", log_str("path", log->path),
        log_int("bytes", about.st_size), log_int("expected", log->size));
    log->size = about.st_size;
}

/* why NULL: there is none. */
static void note_trouble(struct audit_log *log, const char *why)
{
    bool was_fine = !log->trouble[0];

    if (!why && was_fine)
        return;
    metric_set(METRIC_AUDIT_LOG_FAILING, why != NULL);
    if (!why) {
        log->trouble[0] = '\0';
        LOG(LOG_INFO, "the audit log can be written again", log_str("path", log->path));
        return;
    }
    snprintf(log->trouble, sizeof log->trouble, "The audit log cannot be written: %s.", why);
    if (was_fine || log_pause_is_over(&log->trouble_pause, clock_boot_ns() / CLOCK_NS_PER_MS, 10000))
        LOG(LOG_ERROR,
            "the audit log cannot be written: changes are not confirmed, and those that only create are refused",
            log_str("path", log->path), log_str("why", why));
}

static void tell_group(struct audit_log *log, bool is_synced)
{
    struct list *node, group;

    list_init(&group);
    while ((node = list_first(&log->writing))) {
        list_remove(node);
        list_append(&group, node);
    }
    while ((node = list_first(&group))) {
        struct waiter *waiter = LIST_ENTRY(node, struct waiter, node);

        list_remove(node);
        metric_add(is_synced ? METRIC_AUDIT_LOG_LINES : METRIC_AUDIT_LOG_FAILED, 1);
        waiter->done(waiter->arg, is_synced);
        buf_finish(&waiter->body);
        free(waiter);
    }
}

static void end_group(struct audit_log *log, int error)
{
    log->is_writing = false;
    log->must_read_end = error != 0;
    if (error == 0) {
        log->head = log->next_head;
        log->event_seq = log->next_event_seq;
        log->size += (off_t)log->out.len;
        log->is_new_file = log->needs_newline = false;
        log->torn = 0;
    }
    buf_clear(&log->out);
    note_trouble(log, error ? strerror(error) : NULL);
    tell_group(log, error == 0);
    if (log->synced)
        log->synced(log->synced_arg);
    if (!list_empty(&log->waiting))
        wake(log);
    else if (log->is_closing)
        close_handles(log);
}

static void on_written(struct background *background)
{
    struct audit_log *log = (struct audit_log *)background;

    CHECK(uv_timer_stop(&log->patience) == 0);
    log->is_hung = false;
    end_group(log, background->status != 0 ? EAGAIN : log->error);
}

static void join_group(struct audit_log *log)
{
    struct list *node;

    while ((node = list_first(&log->waiting))) {
        list_remove(node);
        list_append(&log->writing, node);
    }
}

/* Fails all that wait. */
static void fail_group(struct audit_log *log, int error)
{
    join_group(log);
    end_group(log, error);
}

/* Fails them, and those of the group that is being written, while it still is. */
static void fail_waiting(struct audit_log *log)
{
    join_group(log);
    tell_group(log, false);
}

/* A disk that hangs must not hold up sign-ins, and those who end something are told that it is not confirmed. What is
 * being written may still get there; its events are also taken over from Redis. */
static void on_patience_over(uv_timer_t *patience)
{
    struct audit_log *log = patience->data;

    log->is_hung = true;
    note_trouble(log, "the disk does not answer");
    fail_waiting(log);
}

/* Goes on in the file that audit_log_reopen() has opened. It is empty, unless somebody put one there. */
static void adopt_next_file(struct audit_log *log)
{
    if (log->next_fd < 0)
        return;
    close(log->fd);
    log->fd = log->next_fd;
    log->next_fd = -1;
    log->must_read_end = true;
}

static void begin_group(struct audit_log *log)
{
    adopt_next_file(log);
    if (log->must_read_end && !read_end(log)) {
        fail_group(log, errno);
        return;
    }
    log->must_read_end = false;
    watch_size(log);
    log->is_writing = true;
    log->next_head = log->head;
    log->next_event_seq = log->event_seq;
    print_opening(log);
    take_waiting(log);
    CHECK(uv_timer_start(&log->patience, on_patience_over, log->settings.write_within_ms, 0) == 0);
    background_start(&log->background, log->loop, write_and_sync, on_written);
}

bool audit_log_reopen(struct audit_log *log, struct buf *ret_why)
{
    struct stat now, there;
    int current = log->next_fd >= 0 ? log->next_fd : log->fd;

    /* If it was not moved away there is nothing to do, and our own lock would refuse it. */
    if (fstat(current, &now) == 0 && stat(log->path, &there) == 0 && now.st_dev == there.st_dev &&
        now.st_ino == there.st_ino)
        return true;
    int fd = open_file(log->path, ret_why);
    if (fd < 0)
        return false;
    if (log->next_fd >= 0)
        close(log->next_fd);
    log->next_fd = fd;
    return true;
}

const char *audit_log_trouble(const struct audit_log *log)
{
    return log->trouble[0] ? log->trouble : NULL;
}

const char *audit_log_chain(const struct audit_log *log)
{
    return log->head.chain;
}

void audit_log_head(const struct audit_log *log, struct audit_published *ret_published)
{
    *ret_published =
        (struct audit_published){.head = log->head, .event_seq = log->event_seq, .time_ms = clock_wall_ms()};
    memcpy(ret_published->node, log->node, sizeof log->node);
}

#include "audit_log_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/loss.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_NAME "audit log"
enum {
    GROUP_MAX_BYTES = 4 * 1024 * 1024,
    MOVES_MAX = 4,
};

/* A line that waits for its sync. */
struct waiter {
    struct list node;
    struct buf body;
    bool is_event; /* not a line about chains */
    audit_logged *done;
    void *arg;
};

static const struct machine MACHINE = {
    .name = "audit log",
    .count = AUDIT_LOG_CLOSED + 1,
    MACHINE_ROW(AUDIT_LOG_IDLE, MACHINE_TO(AUDIT_LOG_WRITING) | MACHINE_TO(AUDIT_LOG_CLOSED)),
    MACHINE_ROW(AUDIT_LOG_WRITING, MACHINE_TO(AUDIT_LOG_IDLE) | MACHINE_TO(AUDIT_LOG_HUNG)),
    MACHINE_ROW(AUDIT_LOG_HUNG, MACHINE_TO(AUDIT_LOG_IDLE)),
    MACHINE_ROW(AUDIT_LOG_CLOSED, 0),
};

MUST_CHECK static bool audit_log_move(struct audit_log *log, enum audit_log_state state)
{
    if (!machine_allows(&MACHINE, log->state, state))
        return false;
    log->state = state;
    INVARIANT(state != AUDIT_LOG_WRITING || (!log->held && list_empty(&log->writing) && log->out.len == 0));
    INVARIANT(state != AUDIT_LOG_CLOSED || (list_empty(&log->waiting) && list_empty(&log->writing)));
    return true;
}

/* Opening */

static void on_idle(uv_idle_t *idle);

struct audit_log *audit_log_open(uv_loop_t *loop, const struct audit_log_settings *settings, struct buf *ret_why)
{
    struct audit_log *log;
    int fd = append_file_open(settings->path, FILE_NAME, true, ret_why);

    if (fd < 0)
        return NULL;
    log = mem_alloc(sizeof *log);
    log->loop = loop;
    log->settings = *settings;
    log->path = mem_copy_text(settings->path, strlen(settings->path));
    log->fd = fd;
    append_file_place(log->path, &(struct buf)BUF_OVER(log->place, sizeof log->place - 1));
    audit_log_name(log, "unnamed");
    list_init(&log->waiting);
    list_init(&log->writing);
    buf_init(&log->out, GROUP_MAX_BYTES + 2 * (size_t)AUDIT_LINE_MAX_BYTES);
    CHECK(uv_idle_init(loop, &log->idle) == 0);
    CHECK(uv_timer_init(loop, &log->patience) == 0);
    log->idle.data = log->patience.data = log;
    if (!audit_log_read_end(log)) {
        buf_printf(ret_why, "cannot read the audit log %s: %s", settings->path, strerror(errno));
        audit_log_close(log, NULL, NULL);
        return NULL;
    }
    log->held = log->head.seq > 0 ? "" : NULL;
    return log;
}

void audit_log_name(struct audit_log *log, const char *node)
{
    snprintf(log->node, sizeof log->node, "%s", node);
}

void audit_log_watch(struct audit_log *log, void (*synced)(void *arg), void *arg)
{
    log->synced = (struct callback){synced, arg};
}

/* Closing */

static void on_idle_closed(uv_handle_t *idle)
{
    struct audit_log *log = idle->data;
    const struct callback closed = log->closed;

    close(log->fd);
    buf_finish(&log->out);
    free(log->path);
    free(log);
    callback_run(closed);
}

static void on_patience_closed(uv_handle_t *patience)
{
    struct audit_log *log = patience->data;

    uv_close((uv_handle_t *)&log->idle, on_idle_closed);
}

static void close_handles(struct audit_log *log)
{
    if (!audit_log_move(log, AUDIT_LOG_CLOSED))
        return;
    uv_close((uv_handle_t *)&log->patience, on_patience_closed);
}

void audit_log_close(struct audit_log *log, void (*closed)(void *arg), void *arg)
{
    REQUIRE(!log->is_closing && list_empty(&log->waiting));
    log->is_closing = true;
    log->closed = (struct callback){closed, arg};
    if (log->state == AUDIT_LOG_IDLE)
        close_handles(log);
}

/* Writing */

static void begin_group(struct audit_log *log);
static void on_written(struct background *background);
static void fail_waiting(struct audit_log *log);

static bool must_wait(const struct audit_log *log)
{
    return log->held && !log->held[0];
}

static void on_idle(uv_idle_t *idle)
{
    struct audit_log *log = idle->data;

    CHECK(uv_idle_stop(idle) == 0);
    if (log->state == AUDIT_LOG_HUNG)
        fail_waiting(log);
    else if (log->state == AUDIT_LOG_IDLE && !list_empty(&log->waiting) && !must_wait(log))
        begin_group(log);
}

static void wake(struct audit_log *log)
{
    if (log->state == AUDIT_LOG_IDLE || log->state == AUDIT_LOG_HUNG)
        CHECK(uv_idle_start(&log->idle, on_idle) == 0);
}

void audit_log_append(struct audit_log *log, const struct audit_line *line, audit_logged *done, void *arg)
{
    struct waiter *waiter = mem_alloc(sizeof *waiter);
    struct audit_line mine = *line;

    REQUIRE(!log->is_closing);
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

static void print_own(struct audit_log *log, const char *type, struct audit_number first, struct audit_number second)
{
    audit_line_print_own(log->settings.keyring, text_of(log->node), type, first, second, &log->next_head, &log->out);
}

/* What must stand in front of the next line. */
static void print_opening(struct audit_log *log)
{
    const struct audit_number none = {0};

    if (log->needs_newline)
        buf_append_char(&log->out, '\n');
    if (log->has_lost)
        print_own(log, AUDIT_LINE_REOPENED, (struct audit_number){"lost_from", log->lost_from},
                  (struct audit_number){"lost_to", log->head.seq});
    else if (log->torn > 0 && !log->is_new_file)
        print_own(log, AUDIT_LINE_TORN, (struct audit_number){"bytes", log->torn}, none);
    else if (log->is_new_file)
        print_own(log, log->next_head.seq == 0 ? AUDIT_LINE_BEGAN : AUDIT_LINE_CONTINUED, none, none);
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

/* On its thread, as is what calls it. */
static void open_next(struct audit_log *log)
{
    struct buf why = BUF_OVER(log->why, sizeof log->why - 1);

    log->next_fd = append_file_open(log->path, FILE_NAME, true, &why);
    log->why[why.len] = '\0';
}

/* Lines that were written while somebody renamed the file are confirmed, because the renamed file has them. The next
 * group is written to a file at the path. */
static void write_and_sync(struct background *background)
{
    struct audit_log *log = (struct audit_log *)background;
    off_t after;

    log->error = 0;
    log->was_written = false;
    log->fate = append_file_look(log->path, log->fd, log->size, &log->found);
    if (log->fate == APPEND_THERE && log->out.len > 0) {
        log->error = append_file_sync(log->fd, buf_text(&log->out));
        log->was_written = log->error == 0;
        if (log->was_written)
            log->fate = append_file_look(log->path, log->fd, log->found + (off_t)log->out.len, &after);
        if (log->was_written && log->fate == APPEND_MOVED)
            log->fate = APPEND_THERE;
    }
    if (log->fate == APPEND_MOVED || log->fate == APPEND_GONE)
        open_next(log);
}

/* Somebody else wrote to the file: the chain goes on, and the verifier tells. */
static void watch_size(struct audit_log *log)
{
    if (log->found != log->size)
        LOG(LOG_ERROR, "somebody else wrote to the audit log", log_str("path", log->path), log_int("bytes", log->found),
            log_int("expected", log->size));
    log->size = log->found + (off_t)log->out.len;
}

/* A copy with all lines may have been put there. */
static void settle_loss(struct audit_log *log)
{
    log->has_lost &= log->lost_from <= log->head.seq;
    log->is_loss_told &= log->has_lost;
    if (!log->has_lost || log->is_loss_told)
        return;
    log->is_loss_told = true;
    LOSS_TELL(LOSS_AUDIT_LOG, log_str("path", log->path), log_int("lost_from", (int64_t)log->lost_from),
              log_int("lost_to", (int64_t)log->head.seq));
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
    list_append_all(&group, &log->writing);
    while ((node = list_take(&group))) {
        struct waiter *waiter = LIST_ENTRY(node, struct waiter, node);

        metric_add(is_synced ? METRIC_AUDIT_LOG_LINES : METRIC_AUDIT_LOG_FAILED, 1);
        waiter->done(waiter->arg, is_synced);
        buf_finish(&waiter->body);
        free(waiter);
    }
}

/* why NULL: it is synced, or there was nothing to write. */
static void end_group(struct audit_log *log, const char *why)
{
    log->moves = 0;
    log->must_read_end = why != NULL;
    if (!why)
        watch_size(log);
    if (!why && log->out.len > 0) {
        ENSURE(log->next_head.seq > log->head.seq && log->next_head.seq >= log->next_event_seq);
        log->head = log->next_head;
        log->event_seq = log->next_event_seq;
        log->is_new_file = log->needs_newline = log->has_lost = log->is_loss_told = false;
        log->torn = 0;
    }
    if (why || log->out.len > 0)
        note_trouble(log, why);
    buf_clear(&log->out);
    tell_group(log, !why);
    callback_run(log->synced);
    if (!list_empty(&log->waiting))
        wake(log);
    else if (log->is_closing && log->state == AUDIT_LOG_IDLE)
        close_handles(log); /* unless a callback has closed it */
}

/* Fails all that wait. */
static void fail_group(struct audit_log *log, const char *why)
{
    list_append_all(&log->writing, &log->waiting);
    end_group(log, why);
}

/* Fails them, and those of the group that is being written, while it still is. */
static void fail_waiting(struct audit_log *log)
{
    list_append_all(&log->writing, &log->waiting);
    tell_group(log, false);
}

/* A disk that hangs must not hold up sign-ins, and those who end something are told that it is not confirmed. What is
 * being written may still get there; its events are also taken over from Redis. */
static void on_patience_over(uv_timer_t *patience)
{
    struct audit_log *log = patience->data;

    if (!audit_log_move(log, AUDIT_LOG_HUNG))
        return;
    note_trouble(log, "the disk does not answer");
    fail_waiting(log);
}

static void begin_group(struct audit_log *log)
{
    if (log->held) {
        fail_group(log, log->held);
        return;
    }
    if (log->must_read_end && !audit_log_read_end(log)) {
        fail_group(log, strerror(errno));
        return;
    }
    log->must_read_end = false;
    settle_loss(log);
    if (!audit_log_move(log, AUDIT_LOG_WRITING)) {
        fail_waiting(log);
        return;
    }
    log->next_head = log->head;
    log->next_event_seq = log->event_seq;
    if (log->has_lost || !list_empty(&log->waiting))
        print_opening(log);
    take_waiting(log);
    CHECK(uv_timer_start(&log->patience, on_patience_over, log->settings.write_within_ms, 0) == 0);
    background_start(&log->background, log->loop, write_and_sync, on_written);
}

static void write_again(struct audit_log *log)
{
    list_append_all(&log->writing, &log->waiting);
    list_append_all(&log->waiting, &log->writing);
    buf_clear(&log->out);
    begin_group(log);
}

/* The path does not lead to what was written: goes on in what is there now. */
static void follow_path(struct audit_log *log)
{
    if (log->was_written) {
        log->head = log->next_head;
        log->event_seq = log->next_event_seq;
    }
    if (log->fate != APPEND_MOVED && log->head.seq > 0 && !log->has_lost) {
        log->has_lost = true;
        log->lost_from = log->first_seq;
    }
    if (log->fate != APPEND_CUT && log->next_fd < 0) {
        settle_loss(log);
        fail_group(log, log->why);
        log->must_read_end = false; /* of what is gone */
        return;
    }
    if (log->fate != APPEND_CUT) {
        close(log->fd);
        log->fd = log->next_fd;
        LOG(LOG_INFO, "audit log reopened", log_str("path", log->path));
    }
    log->must_read_end = true;
    if (++log->moves > MOVES_MAX)
        fail_group(log, "its file is removed, replaced or cut again and again");
    else
        write_again(log);
}

static void on_written(struct background *background)
{
    struct audit_log *log = (struct audit_log *)background;

    CHECK(uv_timer_stop(&log->patience) == 0);
    if (!audit_log_move(log, AUDIT_LOG_IDLE))
        fail_waiting(log);
    else if (background->status != 0)
        end_group(log, strerror(EAGAIN));
    else if (log->fate != APPEND_THERE)
        follow_path(log);
    else
        end_group(log, log->error ? strerror(log->error) : NULL);
}

void audit_log_hold(struct audit_log *log, const char *why)
{
    log->held = why;
    if (why && why[0])
        note_trouble(log, why);
    wake(log);
}

bool audit_log_waits(const struct audit_log *log)
{
    return must_wait(log) && !list_empty(&log->waiting);
}

const char *audit_log_held(const struct audit_log *log)
{
    return log->held;
}

void audit_log_look(struct audit_log *log)
{
    if (!log->held && log->state == AUDIT_LOG_IDLE && !log->is_closing && list_empty(&log->waiting))
        begin_group(log);
}

const char *audit_log_trouble(const struct audit_log *log)
{
    return log->trouble[0] ? log->trouble : NULL;
}

const char *audit_log_place(const struct audit_log *log)
{
    return log->place;
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

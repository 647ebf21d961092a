/* The file's end: where the chain goes on. */
#include "audit_log_internal.h"

#include "base/log.h"

enum { END_MAX_BYTES = 1024 * 1024 };

static bool is_ours(const struct audit_log *log, const struct audit_head *head)
{
    return log->head.chain[0] == '\0' || strcmp(head->chain, log->head.chain) == 0;
}

/* Where the file begins; the head is known. */
static uint64_t read_first_seq(struct audit_log *log)
{
    size_t count = log->size < AUDIT_LINE_MAX_BYTES ? (size_t)log->size : AUDIT_LINE_MAX_BYTES;
    struct buf begin CLEANUP(buf_finish);
    struct audit_line_read first;
    struct text rest, line;

    buf_init(&begin, AUDIT_LINE_MAX_BYTES);
    if (count == 0)
        return log->head.seq + 1;
    if (!append_file_read(log->fd, 0, count, &begin))
        return 0;
    rest = buf_text(&begin);
    if (!text_next(&rest, '\n', &line) || audit_line_read(log->settings.keyring, line, &first) != AUDIT_LINE_GENUINE ||
        !is_ours(log, &first.head))
        return 0;
    return first.head.seq;
}

/* The last genuine line of the file is known. After a failed write, lines that were not confirmed may stand there. */
static void go_on_after(struct audit_log *log, const struct audit_head *last)
{
    log->is_new_file = !is_ours(log, last);
    if (log->is_new_file)
        return;
    if (last->seq >= log->lost_from)
        log->lost_from = last->seq + 1;
    if (last->seq > log->head.seq) {
        log->head = *last;
        log->event_seq = last->seq;
    }
}

/* Nothing in the file is known as ours. That does not end the log, and the verifier tells. */
static void begin_in_file(struct audit_log *log)
{
    log->is_new_file = true;
    if (log->head.chain[0])
        return;
    if (log->size > 0)
        LOG(LOG_ERROR, "the audit log's end was not written by this node, or with another master key: a chain begins",
            log_str("path", log->path));
    audit_head_begin(&log->head);
}

bool audit_log_read_end(struct audit_log *log)
{
    struct buf end CLEANUP(buf_finish) = {0};
    struct audit_line_read last;
    size_t count;

    (void)append_file_look(log->path, log->fd, 0, &log->size);
    count = log->size < END_MAX_BYTES ? (size_t)log->size : END_MAX_BYTES;
    log->torn = count;
    buf_init(&end, END_MAX_BYTES);
    if (count > 0 && !append_file_read(log->fd, log->size - (off_t)count, count, &end))
        return false;
    log->needs_newline = count > 0 && end.ptr[count - 1] != '\n';
    if (audit_line_find_last(log->settings.keyring, buf_text(&end), &last, &log->torn))
        go_on_after(log, &last.head);
    else
        begin_in_file(log);
    log->first_seq = read_first_seq(log);
    return true;
}

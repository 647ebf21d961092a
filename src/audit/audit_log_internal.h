/* Inside src/audit. */
#pragma once
#include "audit/audit_log.h"
#include "base/append_file.h"
#include "base/background.h"
#include "base/callback.h"
#include "base/list.h"
#include "base/log.h"

enum { AUDIT_LOG_WHY_BYTES = 256, AUDIT_LOG_PLACE_BYTES = 512 };

enum audit_log_state { AUDIT_LOG_IDLE, AUDIT_LOG_WRITING, AUDIT_LOG_HUNG, AUDIT_LOG_CLOSED };

struct audit_log {
    struct background background; /* first: on_written() gets it */
    uv_loop_t *loop;
    struct audit_log_settings settings;
    char *path;
    char place[AUDIT_LOG_PLACE_BYTES];
    const char *held; /* see audit_log_hold() */
    char node[AUDIT_NODE_BYTES];
    int fd;

    struct audit_head head;      /* of what is synced; seq 0: the chain has no line yet */
    uint64_t event_seq;          /* of the last event among it */
    struct audit_head next_head; /* of what is being written */
    uint64_t next_event_seq;
    bool is_new_file; /* its first line will name the chain */
    size_t torn;      /* bytes behind the last line that is ours: an unfinished one */
    bool needs_newline;
    off_t size;         /* after the last sync */
    uint64_t first_seq; /* of the file's first line; 0: it is not of this chain */
    bool has_lost;      /* lines lost_from to head.seq, which the next line says */
    uint64_t lost_from; /* 0: not known */
    bool is_loss_told;  /* to operators */

    struct list waiting, writing; /* struct waiter */
    struct buf out;               /* what is being written */

    /* Of the thread. */
    int error;                         /* an errno, or 0 */
    enum append_fate fate;             /* of the file, before it was written, or after */
    bool was_written;                  /* all of it */
    off_t found;                       /* bytes that the file had before */
    int next_fd;                       /* the file that is at the path now; -1: none */
    char why[2 * AUDIT_LOG_WHY_BYTES]; /* there is none, as a sentence; else empty */

    unsigned moves; /* of this group, to another file */
    enum audit_log_state state;
    bool must_read_end;
    bool is_closing; /* once it is idle */
    uv_timer_t patience;
    char trouble[AUDIT_LOG_WHY_BYTES]; /* empty: none */
    struct log_pause trouble_pause;
    uv_idle_t idle; /* starts the next group in the next turn, so that it is complete */
    struct callback synced;
    struct callback closed;
};

/* Learns where the chain goes on. False: the file cannot be read, and errno says why. */
MUST_CHECK bool audit_log_read_end(struct audit_log *log);

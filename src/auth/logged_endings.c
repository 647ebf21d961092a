#include "auth/logged_endings.h"
#include "auth/revocation_log.h"
#include "base/background.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/tail.h"
#include "core/audit_line.h"
#include "core/bucket.h"
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    LOGS = 2,
    NAME_BYTES = 64,
    /* Of one log, in both files together: some seconds, after which the rest is for 'key revoke --from-log'. */
    LINES_MAX = 4000000,
    LINES_BYTES = 4 * 1024 * 1024, /* of audit lines at once; at least the longest one */
};

/* How far one partition has read in one log. */
struct logged_reading {
    struct background background; /* first: on_read() gets it */
    struct logged_endings *logged;
    const char *path;
    bool is_audit;
    unsigned partition;
    char id[NAME_BYTES], former[NAME_BYTES];
    struct tail tail;
    bool is_open, is_last_file, is_first;
    uint64_t lines, others, unreadable;
    int error; /* an errno */
    bool is_cut_short;

    struct buf audit_lines;        /* that end a key, each with its newline */
    struct logged_ending *endings; /* ENDING_LOGS_AT_ONCE of them; NULL: it does not read */
    size_t count;
    ending_logs_read *done;
    void *done_arg;
};

struct logged_part {
    struct ending_logs logs;
    struct logged_reading readings[LOGS];
};

struct logged_endings {
    uv_loop_t *loop;
    struct keyring *keyring;
    char *paths[LOGS];
    unsigned partitions;
    struct logged_part *parts;
};

/* Files. On the thread. */

static bool is_renamed(const char *name, const char *base)
{
    size_t len = strlen(base);
    const char *dot = strrchr(name, '.');
    bool is_compressed = dot && (strcmp(dot, ".gz") == 0 || strcmp(dot, ".xz") == 0 || strcmp(dot, ".zst") == 0 ||
                                 strcmp(dot, ".bz2") == 0);

    return strncmp(name, base, len) == 0 && (name[len] == '-' || name[len] == '.') && !is_compressed;
}

static void note_renamed(const char *folder, const char *name, struct timespec *latest, struct buf *path)
{
    struct buf candidate CLEANUP(buf_finish);
    struct stat about;

    buf_init(&candidate, path->max);
    buf_printf(&candidate, "%s/%s", folder, name);
    buf_append_char(&candidate, '\0');
    if (candidate.failed || stat(candidate.ptr, &about) != 0 || !S_ISREG(about.st_mode) ||
        about.st_mtim.tv_sec < latest->tv_sec ||
        (about.st_mtim.tv_sec == latest->tv_sec && about.st_mtim.tv_nsec <= latest->tv_nsec))
        return;
    *latest = about.st_mtim;
    buf_clear(path);
    buf_append_text(path, buf_text(&candidate));
}

/* The file that the log was renamed to last, as logrotate does ("-20260131", ".1"); with a NUL; empty: none. */
static void find_renamed(const char *path, struct buf *ret_path)
{
    char *for_folder = mem_copy_text(path, strlen(path)), *for_base = mem_copy_text(path, strlen(path));
    const char *folder = dirname(for_folder), *base = basename(for_base);
    struct timespec latest = {0};
    struct dirent *entry;
    DIR *entries = opendir(folder);

    while (entries && (entry = readdir(entries)))
        if (is_renamed(entry->d_name, base))
            note_renamed(folder, entry->d_name, &latest, ret_path);
    if (entries)
        closedir(entries);
    free(for_folder);
    free(for_base);
}

static void open_file(struct logged_reading *reading, const char *path)
{
    int error = tail_open(&reading->tail, path);

    reading->is_open = true;
    if (error == 0)
        return;
    /* A log that was just renamed may not be there yet. */
    if (error != ENOENT)
        reading->error = error;
    tail_close(&reading->tail);
    reading->is_open = false;
}

static bool open_renamed(struct logged_reading *reading)
{
    struct buf path CLEANUP(buf_finish) = {0};

    if (reading->is_last_file)
        return false;
    reading->is_last_file = true;
    buf_init(&path, 2 * (size_t)FILENAME_MAX);
    find_renamed(reading->path, &path);
    if (path.len > 0)
        open_file(reading, path.ptr);
    return reading->is_open;
}

static bool next_line(struct logged_reading *reading, struct text *ret_line)
{
    int error;

    if (reading->is_first)
        open_file(reading, reading->path);
    reading->is_first = false;
    for (;;) {
        if (reading->is_open && tail_next(&reading->tail, ret_line, &error))
            return true;
        if (reading->is_open) {
            reading->error = error != 0 ? error : reading->error;
            reading->unreadable += reading->tail.too_long;
            tail_close(&reading->tail);
            reading->is_open = false;
        }
        if (!open_renamed(reading))
            return false;
    }
}

/* Lines. On the thread. */

/* A line that was cut names the beginning of its store; those of 0.3 name none, and a key of another store is unknown
 * here. */
static bool is_of_store(const struct logged_reading *reading, struct text store)
{
    return text_starts_with(text_of(reading->id), store) || text_starts_with(text_of(reading->former), store);
}

static bool is_of_partition(const struct logged_reading *reading, const struct id *account)
{
    return (bucket_of_account(account) & (reading->logged->partitions - 1)) == reading->partition;
}

static void take_revocation(struct logged_reading *reading, struct text line)
{
    struct revocation_line read;

    if (!revocation_log_read(line, &read) || read.account.text[0] == '\0')
        reading->unreadable += line.len > 0;
    else if (!is_of_store(reading, read.store))
        reading->others++;
    else if (read.what == REVOCATION_DONE && is_of_partition(reading, &read.account))
        reading->endings[reading->count++] = (struct logged_ending){read.key, read.at_ms};
}

/* Parsed on the loop, because keys and JSON belong to it. */
static void take_audit(struct logged_reading *reading, struct text line)
{
    if (line.len > AUDIT_LINE_MAX_BYTES || !audit_line_may_end_key(line))
        return;
    buf_append_text(&reading->audit_lines, line);
    buf_append_char(&reading->audit_lines, '\n');
    reading->count++;
}

static bool has_room(const struct logged_reading *reading)
{
    return reading->count < ENDING_LOGS_AT_ONCE &&
           reading->audit_lines.len + AUDIT_LINE_MAX_BYTES < (size_t)LINES_BYTES;
}

static void work(struct background *background)
{
    struct logged_reading *reading = (struct logged_reading *)background;
    struct text line;

    while (has_room(reading) && reading->lines < LINES_MAX && next_line(reading, &line)) {
        reading->lines++;
        if (reading->is_audit)
            take_audit(reading, line);
        else
            take_revocation(reading, line);
    }
    reading->is_cut_short = reading->lines >= LINES_MAX;
}

/* On the loop */

static void parse_audit_lines(struct logged_reading *reading)
{
    struct text rest = buf_text(&reading->audit_lines), line;
    struct audit_key_end end;

    reading->count = 0;
    while (text_next(&rest, '\n', &line)) {
        if (line.len == 0)
            continue;
        if (!audit_line_read_key_end(reading->logged->keyring, line, &end))
            reading->unreadable++;
        else if (is_of_partition(reading, &end.account))
            reading->endings[reading->count++] = (struct logged_ending){end.key, end.at_ms};
    }
    buf_clear(&reading->audit_lines);
}

static void on_read(struct background *background);

static void read_on(struct logged_reading *reading)
{
    reading->count = 0;
    background_start(&reading->background, reading->logged->loop, work, on_read);
}

static void on_read(struct background *background)
{
    struct logged_reading *reading = (struct logged_reading *)background;
    bool has_more;

    if (background->status != 0)
        reading->error = -background->status;
    has_more = background->status == 0 && reading->count > 0;
    if (reading->is_audit)
        parse_audit_lines(reading);
    if (has_more && reading->count == 0)
        read_on(reading); /* all of them belong to other partitions */
    else
        reading->done(reading->done_arg, reading->endings, reading->count);
}

static void logs_read(void *arg, unsigned log, const struct store_names *names, bool is_first, ending_logs_read *done,
                      void *done_arg)
{
    struct logged_part *part = arg;
    struct logged_reading *reading = &part->readings[log];

    if (!reading->endings)
        reading->endings = mem_alloc(ENDING_LOGS_AT_ONCE * sizeof *reading->endings);
    if (is_first) {
        snprintf(reading->id, sizeof reading->id, "%.*s", TEXT_ARG(names->id));
        snprintf(reading->former, sizeof reading->former, "%.*s", TEXT_ARG(names->former));
        reading->is_first = true;
        reading->is_last_file = false;
        reading->lines = reading->others = reading->unreadable = 0;
        reading->error = 0;
        reading->is_cut_short = false;
    }
    reading->done = done;
    reading->done_arg = done_arg;
    read_on(reading);
}

static void report(const struct logged_reading *reading)
{
    if (reading->error != 0)
        LOG(LOG_ERROR, "a log cannot be compared with Redis: revocations that only it names may be lost",
            log_str("path", reading->path),
            log_str("why", reading->error == EINVAL ? "it is no regular file" : strerror(reading->error)));
    if (reading->others > 0)
        LOG(LOG_WARN, "a log has lines of another store: they are not used", log_str("path", reading->path),
            log_int("lines", (int64_t)reading->others));
    if (reading->is_cut_short)
        LOG(LOG_ERROR, "a log was compared with Redis in part: run 'chatelaine key revoke --from-log' with it",
            log_str("path", reading->path), log_int("lines", (int64_t)reading->lines));
    if (reading->unreadable > 0)
        LOG(LOG_INFO, "a log has lines that cannot be read", log_str("path", reading->path),
            log_int("lines", (int64_t)reading->unreadable));
}

static void put_away(struct logged_reading *reading)
{
    tail_close(&reading->tail);
    reading->is_open = false;
    buf_finish(&reading->audit_lines);
    buf_init(&reading->audit_lines, LINES_BYTES);
    free(reading->endings);
    reading->endings = NULL;
}

static void logs_end(void *arg, unsigned log)
{
    struct logged_part *part = arg;

    report(&part->readings[log]);
    put_away(&part->readings[log]);
}

/* Creating */

static void add_log(struct logged_part *part, struct logged_endings *logged, unsigned partition, bool is_audit)
{
    struct logged_reading *reading = &part->readings[part->logs.count];

    if (!logged->paths[is_audit])
        return;
    part->logs.count++;
    reading->logged = logged;
    reading->path = logged->paths[is_audit];
    reading->is_audit = is_audit;
    reading->partition = partition;
    reading->tail.fd = -1;
    buf_init(&reading->audit_lines, LINES_BYTES);
}

struct logged_endings *logged_endings_create(uv_loop_t *loop, const struct logged_endings_settings *settings)
{
    const char *const paths[LOGS] = {settings->revocation_log, settings->audit_log};
    struct logged_endings *logged;

    if (!paths[0] && !paths[1])
        return NULL;
    logged = mem_alloc(sizeof *logged);
    logged->loop = loop;
    logged->keyring = settings->keyring;
    logged->partitions = settings->partitions;
    for (unsigned i = 0; i < LOGS; i++)
        logged->paths[i] = paths[i] ? mem_copy_text(paths[i], strlen(paths[i])) : NULL;
    logged->parts = mem_alloc(logged->partitions * sizeof *logged->parts);
    for (unsigned i = 0; i < logged->partitions; i++) {
        struct logged_part *part = &logged->parts[i];

        part->logs = (struct ending_logs){.read = logs_read, .end = logs_end, .arg = part};
        add_log(part, logged, i, false);
        add_log(part, logged, i, true);
    }
    return logged;
}

void logged_endings_destroy(struct logged_endings *logged)
{
    if (!logged)
        return;
    for (unsigned i = 0; i < logged->partitions; i++)
        for (unsigned log = 0; log < logged->parts[i].logs.count; log++)
            put_away(&logged->parts[i].readings[log]);
    free(logged->parts);
    free(logged->paths[0]);
    free(logged->paths[1]);
    free(logged);
}

const struct ending_logs *logged_endings_of(struct logged_endings *logged, unsigned partition)
{
    return logged ? &logged->parts[partition].logs : NULL;
}

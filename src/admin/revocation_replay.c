/* key revoke --from-log: after Redis was restored from a backup, revokes again every key named in the nodes' revocation
 * logs, each through the usual barrier; one whose revocation is scheduled for later, no sooner than that. This program
 * is not a node, so nodes cannot acknowledge to it: while nodes serve, each revocation waits 1.25 leases + 50 ms. So
 * many run in parallel. */
#include "admin_internal.h"

#include "auth/revocation_log.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "records/key_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Revocations in parallel, per pass. Each pass retries what failed in the one before, with less load: a Redis that
 * waits for distant replicas may time out under the first pass. */
static const size_t PASSES[] = {256, 32, 4};
enum { PASS_COUNT = sizeof PASSES / sizeof *PASSES };

#define PROGRESS_EVERY_NS UINT64_C(5000000000)

/* All lines about a key, in the order in which they were said; the last one counts. */
struct key_lines {
    const struct revocation_line *lines;
    size_t count;
};

struct replay {
    struct store_client client;
    struct revocation_line *lines;
    size_t line_count, line_capacity;
    size_t unreadable; /* lines */
    struct key_lines *keys;
    size_t count; /* at the end of a pass, those that failed */

    /* The current pass. keys[0, failed) are left for the next pass; keys[0, next) have been started. */
    size_t next, failed, under_way, width;

    size_t revoked, revoked_before, unknown;
    size_t not_due;            /* their revocation is scheduled for later, or was withdrawn */
    enum store_result trouble; /* result of the last failure */
    uint64_t told_ns;          /* when progress was last printed */
};

/* Reading */

static void add_line(struct replay *replay, struct text line)
{
    struct revocation_line read;

    if (line.len == 0)
        return; /* a node ended a line that a crash had cut short */
    if (!revocation_log_read(line, &read)) {
        replay->unreadable++;
        return;
    }
    replay->lines = mem_grow(replay->lines, replay->line_count, &replay->line_capacity, sizeof *replay->lines);
    replay->lines[replay->line_count++] = read;
}

static int read_lines(struct replay *replay, FILE *file, const char *name)
{
    size_t readable_before = replay->line_count, unreadable_before = replay->unreadable;
    char *line = NULL;
    size_t size = 0;
    ssize_t got;

    errno = 0;
    while ((got = getline(&line, &size, file)) >= 0) {
        if (got > 0 && line[got - 1] == '\n')
            got--;
        add_line(replay, (struct text){line, (size_t)got});
    }
    free(line);
    if (!feof(file))
        return command_fail(EXIT_FAILED, "cannot read %s: %s; nothing was revoked", name, strerror(errno));
    /* Probably a compressed file. A few torn lines are normal and reported at the end, but a file without any key must
     * not pass for a replay. */
    if (replay->line_count == readable_before && replay->unreadable > unreadable_before)
        return command_fail(EXIT_FAILED, "%s is not a revocation log: no line names a key; nothing was revoked", name);
    return EXIT_DONE;
}

static int read_log(struct replay *replay, const char *path)
{
    if (text_equal(text_of(path), TEXT("-")))
        return read_lines(replay, stdin, "standard input");
    FILE *file = fopen(path, "re");
    if (!file)
        return command_fail(EXIT_FAILED, "cannot open %s: %s; nothing was revoked", path, strerror(errno));
    int code = read_lines(replay, file, path);
    fclose(file);
    return code;
}

/* By key. One that was revoked is revoked, whenever its schedule was changed; of what was said at the same time, the
 * sooner end comes last. */
static int compare_lines(const void *a, const void *b)
{
    const struct revocation_line *x = a, *y = b;
    int order = strcmp(x->key.text, y->key.text);

    if (order == 0)
        order = (x->what == REVOCATION_DONE) - (y->what == REVOCATION_DONE);
    if (order == 0)
        order = (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
    if (order == 0)
        order = (int)x->what - (int)y->what;
    return order == 0 ? (x->ends_ms < y->ends_ms) - (x->ends_ms > y->ends_ms) : order;
}

/* A key occurs several times if several nodes logged it, or if it was revoked again. */
static void gather_keys(struct replay *replay)
{
    if (replay->line_count == 0)
        return;
    qsort(replay->lines, replay->line_count, sizeof *replay->lines, compare_lines);
    replay->keys = mem_alloc(replay->line_count * sizeof *replay->keys);
    for (size_t i = 0; i < replay->line_count; i++) {
        if (i == 0 || !id_equal(&replay->lines[i].key, &replay->lines[i - 1].key))
            replay->keys[replay->count++] = (struct key_lines){.lines = &replay->lines[i]};
        replay->keys[replay->count - 1].count++;
    }
}

static int read_logs(struct replay *replay, const struct command_line *line)
{
    for (int i = 0; i < line->operand_count; i++) {
        int code = read_log(replay, line->operands[i]);
        if (code != EXIT_DONE)
            return code;
    }
    gather_keys(replay);
    return EXIT_DONE;
}

/* Revoking: each key is looked up first, to report whether it was revoked already, and then revoked in any case; or its
 * end is scheduled again. */

struct replayed_key {
    struct replay *replay;
    struct key_lines key;
    unsigned partition;       /* that is asked for it: an id does not tell its own */
    enum store_result missed; /* of a partition that could not be asked; STORE_NOT_FOUND: there was none */
    bool is_revoked_before;
};

static const struct key_view EVERYTHING = {.any_kind = true};

static void look_up_key(struct replayed_key *op);
static void replay_go_on(struct replay *replay);
static void key_looked_up(void *arg, enum store_result result, const struct key_record *key);
static void key_revoked_again(void *arg, enum store_result result, const struct key_record *key);

static const struct id *id_of(const struct replayed_key *op)
{
    return &op->key.lines[0].key;
}

static const struct revocation_line *last_line(const struct replayed_key *op)
{
    return &op->key.lines[op->key.count - 1];
}

static struct store *store_of(const struct replayed_key *op)
{
    return partitions_at(op->replay->client.partitions, op->partition);
}

static void replay_start_key(struct replay *replay, const struct key_lines *key)
{
    struct replayed_key *op = mem_alloc(sizeof *op);

    op->replay = replay;
    op->key = *key;
    op->missed = STORE_NOT_FOUND;
    replay->under_way++;
    look_up_key(op);
}

static void look_up_key(struct replayed_key *op)
{
    key_store_get(store_of(op), &EVERYTHING, id_of(op), key_looked_up, op);
}

/* counter: of those that are done; NULL: it failed. */
static void replay_end_key(struct replayed_key *op, size_t *counter, enum store_result result)
{
    struct replay *replay = op->replay;

    CHECK(replay);
    if (counter) {
        ++*counter;
    } else {
        replay->trouble = result;
        replay->keys[replay->failed++] = op->key;
    }
    free(op);
    replay->under_way--;
    replay_go_on(replay);
}

static void revoke_key(struct replayed_key *op)
{
    key_store_revoke(store_of(op), &EVERYTHING, id_of(op), &OPERATOR, key_revoked_again, op);
}

static void key_scheduled_again(void *arg, enum store_result result, UNUSED const struct key_record *key,
                                UNUSED int64_t said_ms, enum key_schedule_refusal why, UNUSED uint32_t retry_after_s)
{
    struct replayed_key *op = arg;

    if (result == STORE_CONFLICT || (result == STORE_REFUSED && why == KEY_SCHEDULE_PAST))
        revoke_key(op);
    else
        replay_end_key(op, result == STORE_OK ? &op->replay->not_due : NULL, result);
}

/* Whether the store has a time that the log says was replaced afterwards. */
static bool is_outdated(const struct replayed_key *op, int64_t ends_ms)
{
    for (size_t i = 0; i + 1 < op->key.count; i++)
        if (op->key.lines[i].what == REVOCATION_SCHEDULED && op->key.lines[i].ends_ms == ends_ms)
            return true;
    return false;
}

/* Without that proof the sooner time stays, because it may have been said after the log was copied. */
static void schedule_key(struct replayed_key *op, int64_t stored_ms)
{
    bool is_free = stored_ms > 0 && is_outdated(op, stored_ms);
    int64_t ends_ms = last_line(op)->ends_ms;

    if (!is_free && stored_ms > 0 && (ends_ms == 0 || stored_ms < ends_ms))
        ends_ms = stored_ms;
    if (ends_ms == 0 && stored_ms == 0)
        replay_end_key(op, &op->replay->not_due, STORE_OK);
    else
        key_store_schedule(store_of(op), &EVERYTHING, id_of(op), ends_ms, is_free, &OPERATOR, key_scheduled_again, op);
}

static void key_looked_up(void *arg, enum store_result result, const struct key_record *key)
{
    struct replayed_key *op = arg;

    if (result != STORE_OK && result != STORE_NOT_FOUND)
        op->missed = result;
    if (result != STORE_OK && op->partition + 1 < partitions_count(op->replay->client.partitions)) {
        op->partition++;
        look_up_key(op);
        return;
    }
    if (result != STORE_OK) {
        key_revoked_again(op, op->missed, NULL);
        return;
    }
    op->is_revoked_before = key->revoked_ms != 0;
    if (op->is_revoked_before || last_line(op)->what == REVOCATION_DONE)
        revoke_key(op);
    else
        schedule_key(op, key->ends_ms);
}

static void key_revoked_again(void *arg, enum store_result result, UNUSED const struct key_record *key)
{
    struct replayed_key *op = arg;
    struct replay *replay = op->replay;

    if (result == STORE_OK)
        replay_end_key(op, op->is_revoked_before ? &replay->revoked_before : &replay->revoked, result);
    else
        replay_end_key(op, result == STORE_NOT_FOUND ? &replay->unknown : NULL, result);
}

static void print_progress(struct replay *replay)
{
    uint64_t now_ns = clock_boot_ns();

    if (now_ns - replay->told_ns < PROGRESS_EVERY_NS)
        return;
    replay->told_ns = now_ns;
    fprintf(stderr, "chatelaine: %zu of %zu keys done\n", replay->next - replay->failed - replay->under_way,
            replay->count);
}

static void replay_go_on(struct replay *replay)
{
    print_progress(replay);
    while (replay->under_way < replay->width && replay->next < replay->count)
        replay_start_key(replay, &replay->keys[replay->next++]);
    if (replay->under_way == 0)
        store_client_done(&replay->client);
}

/* keys holds those that failed afterwards. */
static void replay_pass(struct replay *replay, size_t width)
{
    replay->next = replay->failed = 0;
    replay->width = width;
    replay_go_on(replay);
    store_client_wait(&replay->client);
    replay->count = replay->failed;
}

static void replay_all(struct replay *replay)
{
    replay->told_ns = clock_boot_ns();
    for (size_t pass = 0; pass < PASS_COUNT && replay->count > 0; pass++) {
        if (partitions_ready(replay->client.partitions) < partitions_count(replay->client.partitions))
            store_client_pause(&replay->client, (uint64_t)replay->client.settings.timeout_ms);
        replay_pass(replay, PASSES[pass]);
    }
}

/* Reporting */

static void print_json(const struct replay *replay, struct buf *out)
{
    const struct {
        const char *name;
        size_t count;
    } MEMBERS[] = {
        {"revoked", replay->revoked}, {"already_revoked", replay->revoked_before},
        {"not_due", replay->not_due}, {"unknown", replay->unknown},
        {"failed", replay->count},    {"unreadable_lines", replay->unreadable},
    };
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++) {
        json_put_number(&w, MEMBERS[i].name, (int64_t)MEMBERS[i].count);
    }
    json_object_end(&w);
}

static void print_sentence(const struct replay *replay, struct buf *out)
{
    buf_printf(out, "%zu %s revoked, %zu %s revoked already, %zu unknown, %zu %s unreadable", replay->revoked,
               replay->revoked == 1 ? "key" : "keys", replay->revoked_before,
               replay->revoked_before == 1 ? "was" : "were", replay->unknown, replay->unreadable,
               replay->unreadable == 1 ? "line" : "lines");
    if (replay->not_due > 0)
        buf_printf(out, ", %zu not due (scheduled for later, or withdrawn)", replay->not_due);
    if (replay->count > 0)
        buf_printf(out, ", %zu FAILED and may still be accepted", replay->count);
}

static int print_summary(const struct command_line *line, const struct replay *replay)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    if (line->json)
        print_json(replay, &out);
    else
        print_sentence(replay, &out);
    buf_append_char(&out, '\n');
    return command_print(buf_text(&out));
}

/* A log with no key of this store may mean that the wrong backup was restored, or that --redis or --prefix is wrong. */
static void print_doubt(const struct replay *replay, size_t keys)
{
    if (replay->unknown == 0)
        return;
    if (replay->unknown == keys)
        fprintf(stderr, "chatelaine: No key of this log is in this store. Is it the right backup, and do --redis and "
                        "--prefix lead to it?\n");
    fprintf(stderr,
            "chatelaine: Unknown keys were created after the backup. They are lost, and nobody can use them.\n");
}

/* Leaves nothing open. */
static int replay_in_store(struct replay *replay, const struct command_line *line)
{
    static const struct store_refusals NO_OTHERS = {0};
    int code = command_open(line, &replay->client, NULL);
    size_t keys = replay->count;

    if (code != EXIT_DONE)
        return code;
    replay_all(replay);
    code = print_summary(line, replay);
    print_doubt(replay, keys);
    if (replay->count > 0)
        code = store_client_explain(&replay->client, replay->trouble, &NO_OTHERS);
    store_client_close(&replay->client);
    return code;
}

int revocation_replay_run(const struct command_line *line)
{
    struct replay replay = {0};
    int code = read_logs(&replay, line);

    if (code == EXIT_DONE)
        code = replay_in_store(&replay, line);
    free(replay.keys);
    free(replay.lines);
    return code;
}

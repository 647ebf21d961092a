/* key revoke --from-log: after Redis was restored from a backup, revokes again every key named in the nodes' revocation
 * logs, each through the usual barrier. This program is not a node, so nodes cannot acknowledge to it: while nodes
 * serve, each revocation waits 1.25 leases + 50 ms. So many run in parallel. */
#include "admin_internal.h"

#include "auth/revocation_log.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "store/key_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Revocations in parallel, per pass. Each pass retries what failed in the one before, with less load: a Redis that
 * waits for distant replicas may time out under the first pass. */
static const size_t PASSES[] = {256, 32, 4};
enum { PASS_COUNT = sizeof PASSES / sizeof *PASSES };

#define PROGRESS_EVERY_NS UINT64_C(5000000000)

struct replay {
    struct store_client client;
    struct id *ids;
    size_t count, capacity; /* at the end of a pass, those that failed */
    size_t unreadable;      /* lines */

    /* The current pass. ids[0, failed) are left for the next pass; ids[0, next) have been started. */
    size_t next, failed, under_way, width;

    size_t revoked, revoked_before, unknown;
    enum store_result trouble; /* result of the last failure */
    uint64_t told_ns;          /* when progress was last printed */
};

/* Reading */

static void add_line(struct replay *replay, struct text line)
{
    struct id id;

    if (line.len == 0)
        return; /* a node ended a line that a crash had cut short */
    if (!revocation_log_read(line, &id)) {
        replay->unreadable++;
        return;
    }
    if (replay->count == replay->capacity) {
        replay->capacity = replay->capacity ? 2 * replay->capacity : 1024;
        replay->ids = mem_resize(replay->ids, replay->capacity * sizeof *replay->ids);
    }
    replay->ids[replay->count++] = id;
}

static int read_lines(struct replay *replay, FILE *file, const char *name)
{
    size_t readable_before = replay->count, unreadable_before = replay->unreadable;
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
    if (replay->count == readable_before && replay->unreadable > unreadable_before)
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

static int read_logs(struct replay *replay, const struct command_line *line)
{
    for (int i = 0; i < line->operand_count; i++) {
        int code = read_log(replay, line->operands[i]);
        if (code != EXIT_DONE)
            return code;
    }
    /* A key occurs several times if several nodes logged it, or if it was revoked again. */
    replay->count = id_sort_unique(replay->ids, replay->count);
    return EXIT_DONE;
}

/* Revoking: each key is looked up first, to report whether it was revoked already, and then revoked in any case. */

struct replayed_key {
    struct replay *replay;
    struct id id;
    unsigned partition;       /* that is asked for it: an id does not tell its own */
    enum store_result missed; /* of a partition that could not be asked; STORE_NOT_FOUND: there was none */
    bool is_revoked_before;
};

static const struct key_view EVERYTHING = {.any_kind = true};

static void look_up_key(struct replayed_key *op);
static void replay_go_on(struct replay *replay);
static void key_looked_up(void *arg, enum store_result result, const struct key_record *key);
static void key_revoked_again(void *arg, enum store_result result, const struct key_record *key);

static void replay_start_key(struct replay *replay, const struct id *id)
{
    struct replayed_key *op = mem_alloc(sizeof *op);

    op->replay = replay;
    op->id = *id;
    op->missed = STORE_NOT_FOUND;
    replay->under_way++;
    look_up_key(op);
}

static void look_up_key(struct replayed_key *op)
{
    key_store_get(partitions_at(op->replay->client.partitions, op->partition), &EVERYTHING, &op->id, key_looked_up, op);
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
    key_store_revoke(partitions_at(op->replay->client.partitions, op->partition), &EVERYTHING, &op->id, &OPERATOR,
                     key_revoked_again, op);
}

static void key_revoked_again(void *arg, enum store_result result, const struct key_record *key)
{
    struct replayed_key *op = arg;
    struct replay *replay = op->replay;

    (void)key;
    if (result == STORE_OK) {
        *(op->is_revoked_before ? &replay->revoked_before : &replay->revoked) += 1;
    } else if (result == STORE_NOT_FOUND) {
        replay->unknown++;
    } else {
        replay->trouble = result;
        replay->ids[replay->failed++] = op->id;
    }
    free(op);
    replay->under_way--;
    replay_go_on(replay);
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
        replay_start_key(replay, &replay->ids[replay->next++]);
    if (replay->under_way == 0)
        store_client_done(&replay->client);
}

/* ids holds those that failed afterwards. */
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
        {"revoked", replay->revoked}, {"already_revoked", replay->revoked_before}, {"unknown", replay->unknown},
        {"failed", replay->count},    {"unreadable_lines", replay->unreadable},
    };
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++) {
        json_key(&w, MEMBERS[i].name);
        json_put_integer(&w, (int64_t)MEMBERS[i].count);
    }
    json_object_end(&w);
}

static void print_sentence(const struct replay *replay, struct buf *out)
{
    buf_printf(out, "%zu %s revoked, %zu %s revoked already, %zu unknown, %zu %s unreadable", replay->revoked,
               replay->revoked == 1 ? "key" : "keys", replay->revoked_before,
               replay->revoked_before == 1 ? "was" : "were", replay->unknown, replay->unreadable,
               replay->unreadable == 1 ? "line" : "lines");
    if (replay->count > 0)
        buf_printf(out, ", %zu FAILED and may still be accepted", replay->count);
}

static int print_summary(const struct command_line *line, const struct replay *replay)
{
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, ADMIN_WHY_MAX_BYTES);
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
    int code = store_client_open(&replay->client, &line->settings, NULL);
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
    free(replay.ids);
    return code;
}

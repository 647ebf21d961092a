#include "trail/audit_keeper.h"

#include "engine/access.h"
#include "trail/audit_events.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/loss.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "engine/part.h"
#include "engine/verb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TICK_MS = 1000,
    FIRST_TICK_MS = 100,
    HEADS_EVERY = 60,
    TAKE_EVERY = 10,
    RESUME_EVERY = 5,
    TAKE_AGE_MS = 60 * 1000,
    TAKEN_MAX = 100,
    /* Each chain is noted by so many others: enough that one of them is out of reach, and few enough for many nodes. */
    HEADS_NOTED = 8,
    COPY_BYTES = 48,
    COPIES_PER_CALL = 500,
    MS_PER_S = 1000,
};

/* A copy in Redis of an event that is synced now. */
struct copy {
    size_t class;
    char name[COPY_BYTES];
};

/* What was last noted of another chain. */
struct noted {
    char chain[AUDIT_CHAIN_CHARS + 1];
    uint64_t seq, event_seq;
};

/* Of one partition. */
struct audit_part {
    struct audit_keeper *keeper;
    struct store *store;
    struct store_log log;
    struct copy *copies;
    size_t copy_count, copy_room;
    struct audit_backlog backlog; /* as last seen */
    bool is_taking, is_exchanging, has_published;
    bool has_answered;  /* so Redis knows whether this node writes its chain */
    int64_t refused_ms; /* by its last answer another node writes this chain, for so long if it has ended; 0: none */
};

struct audit_keeper {
    struct audit_log *log;
    struct keyring *keyring;
    uv_timer_t timer;
    uint64_t ticks;
    struct noted *noted; /* every partition has the heads of all chains; each is noted once */
    size_t noted_count;
    bool is_ending, was_refused; /* refused: another node writes this chain */
    unsigned exchanges;          /* that its end waits for */
    struct log_pause altered_pause;
    void (*ended)(void *arg);
    void *ended_arg;
    unsigned part_count;
    struct audit_part parts[];
};

/* As AUDIT_CLASSES in prelude.lua. */
static const struct text CLASS_NAMES[AUDIT_CLASSES] = {{"people", 6}, {"live", 4}, {"test", 4}, {"refused", 7}};

static bool class_read(const struct redis_reply *reply, size_t *ret_class)
{
    struct text name;

    if (!reply_text(reply, &name))
        return false;
    for (*ret_class = 0; *ret_class < AUDIT_CLASSES; ++*ret_class)
        if (text_equal(name, CLASS_NAMES[*ret_class]))
            return true;
    return false;
}

/* Copies that are no longer needed. If this is lost they are taken over later, and logged once more. */

static void on_forgotten(UNUSED void *arg, UNUSED enum store_result result, UNUSED const struct redis_reply *reply)
{
}

static void forget(struct audit_part *part, const struct copy *copies, size_t count)
{
    struct text *argv = mem_alloc(2 * count * sizeof *argv);

    for (size_t i = 0; i < count; i++) {
        argv[2 * i] = CLASS_NAMES[copies[i].class];
        argv[2 * i + 1] = text_of(copies[i].name);
    }
    store_call_script(part->store, SCRIPT_audit_logged, SCRIPT_READS, 2 * count, argv, on_forgotten, NULL);
    free(argv);
}

static void forget_copies(struct audit_part *part)
{
    for (size_t i = 0; i < part->copy_count; i += COPIES_PER_CALL) {
        size_t left = part->copy_count - i;

        forget(part, part->copies + i, left < COPIES_PER_CALL ? left : COPIES_PER_CALL);
    }
    part->copy_count = 0;
}

static void on_synced(void *arg)
{
    struct audit_keeper *keeper = arg;

    for (unsigned i = 0; i < keeper->part_count; i++)
        forget_copies(&keeper->parts[i]);
}

static void add_copy(struct audit_part *part, const struct copy *copy)
{
    if (copy->name[0] == '\0')
        return;
    if (part->copy_count == part->copy_room) {
        part->copy_room = part->copy_room ? 2 * part->copy_room : 64;
        part->copies = mem_resize(part->copies, part->copy_room * sizeof *part->copies);
    }
    part->copies[part->copy_count++] = *copy;
}

/* Events */

/* The events of one reply. */
struct audit_batch {
    struct audit_part *part;
    size_t due;
    bool has_failed;
    audit_logged *done;
    void *arg;
};

struct pending {
    struct audit_batch *batch;
    struct copy copy;
};

static void batch_part_over(struct audit_batch *batch, bool is_synced)
{
    batch->has_failed |= !is_synced;
    if (--batch->due > 0)
        return;
    batch->done(batch->arg, !batch->has_failed);
    free(batch);
}

static void on_logged(void *arg, bool is_synced)
{
    struct pending *pending = arg;
    struct audit_batch *batch = pending->batch;

    if (is_synced)
        add_copy(batch->part, &pending->copy);
    free(pending);
    batch_part_over(batch, is_synced);
}

static void add_datum(struct audit_line *line, struct text name, struct text value)
{
    if (line->data_count < AUDIT_LINE_DATA_MAX)
        line->data[line->data_count++] = (struct audit_line_datum){name, value};
}

/* from: the chain of the node that should have logged it, or "command"; empty: this is the node. */
static void append_event(struct audit_keeper *keeper, const struct audit_event *event, const struct id *account,
                         struct text from, struct pending *pending)
{
    struct audit_line line = {.time_ms = event->created_ms,
                              .id = id_text(&event->id),
                              .account = id_text(account),
                              .type = event->type,
                              .actor = event->actor,
                              .target = event->target,
                              .ip = event->ip,
                              .request_id = event->request_id};
    char count[24];

    for (size_t i = 0; i < event->data_count; i++)
        add_datum(&line, event->data[i].name, event->data[i].value);
    snprintf(count, sizeof count, "%" PRId64, event->count);
    if (event->count > 0)
        add_datum(&line, TEXT("count"), text_of(count));
    if (from.len > 0)
        add_datum(&line, TEXT("taken_over_from"), from);
    audit_log_append(keeper->log, &line, on_logged, pending);
}

static bool read_event(const struct redis_reply *item, struct audit_event *ret_event, struct id *ret_account,
                       struct copy *ret_copy)
{
    struct text account;

    *ret_event = (struct audit_event){0};
    *ret_account = (struct id){0};
    return reply_text(reply_at(item, 0), &account) &&
           (account.len == 0 || id_parse(ID_ACCOUNT, account, ret_account)) &&
           class_read(reply_at(item, 1), &ret_copy->class) &&
           audit_entry_read(reply_at(item, 2), ret_copy->class, ret_account, ret_event) &&
           audit_fields_read(reply_at(item, 3), ret_event) &&
           reply_chars(reply_at(item, 4), ret_copy->name, sizeof ret_copy->name);
}

static struct audit_batch *batch_begin(struct audit_part *part, size_t due, audit_logged *done, void *arg)
{
    struct audit_batch *batch = mem_alloc(sizeof *batch);

    *batch = (struct audit_batch){.part = part, .due = due, .done = done, .arg = arg};
    return batch;
}

static void log_events(void *arg, const struct redis_reply *events, audit_logged *done, void *done_arg)
{
    struct audit_part *part = arg;
    struct audit_batch *batch = batch_begin(part, events->count, done, done_arg);
    struct audit_event event;
    struct id account;

    CHECK(events->count > 0);
    for (size_t i = 0; i < events->count; i++) {
        struct pending *pending = mem_alloc(sizeof *pending);

        pending->batch = batch;
        if (!read_event(reply_at(events, i), &event, &account, &pending->copy)) {
            /* Our own script returned it: it must not be lost in silence. */
            store_malformed(part->store, "event");
            event = (struct audit_event){.type = TEXT("log.malformed")};
            account = (struct id){0};
        }
        append_event(part->keeper, &event, &account, TEXT(""), pending);
    }
}

/* Taking over */

static void on_taken_over(void *arg, UNUSED bool is_synced)
{
    struct audit_part *part = arg;

    part->is_taking = false;
}

static struct text taken_from(const struct redis_reply *item)
{
    struct text chain;

    return reply_text(reply_at(item, 5), &chain) && chain.len > 0 ? chain : TEXT("command");
}

/* Whoever writes to Redis may have left something else there. It is told, and goes. */
static void take_over(struct audit_part *part, const struct redis_reply *item, struct audit_batch *batch)
{
    struct pending *pending = mem_alloc(sizeof *pending);
    struct audit_event event;
    struct id account;
    bool is_event = read_event(item, &event, &account, &pending->copy);

    pending->batch = batch;
    if (!is_event) {
        store_malformed(part->store, "event that is in no log");
        if (class_read(reply_at(item, 1), &pending->copy.class) &&
            reply_chars(reply_at(item, 4), pending->copy.name, sizeof pending->copy.name))
            forget(part, &pending->copy, 1);
        free(pending);
        batch_part_over(batch, false);
        return;
    }
    metric_add(METRIC_AUDIT_LOG_TAKEN_OVER, 1);
    append_event(part->keeper, &event, &account, taken_from(item), pending);
}

static void on_tick(uv_timer_t *timer);
static const char UNASKED[] = "Redis did not say whether another node writes this chain";
static const char RECENT[] =
    "another node wrote this chain less than 35 s ago, perhaps this one before its host started";
static const char COPIED[] = "another live node writes this chain, so this file is a copy of its log";

/* The first answer lets the log begin, unless another node writes its chain in any partition. One that lives says so
 * again and again. */
static void note_writer(struct audit_part *part, int64_t refused_ms)
{
    struct audit_keeper *keeper = part->keeper;
    const char *was_held = audit_log_held(keeper->log), *held = NULL;
    bool is_other_alive = part->refused_ms > 0 && refused_ms > part->refused_ms;

    part->has_answered = true;
    part->refused_ms = refused_ms;
    for (unsigned i = 0; i < keeper->part_count; i++)
        if (keeper->parts[i].refused_ms > 0)
            held = is_other_alive || was_held == COPIED ? COPIED : RECENT;
    if (held == was_held || keeper->is_ending)
        return;
    if (held == COPIED)
        LOSS_TELL(LOSS_IDENTITY, log_str("chain", audit_log_chain(keeper->log)));
    keeper->was_refused |= held != NULL;
    audit_log_hold(keeper->log, held);
    CHECK(uv_timer_start(&keeper->timer, on_tick, held ? TICK_MS : 0, TICK_MS) == 0);
}

static bool read_backlog(const struct redis_reply *reply, struct audit_backlog *ret_backlog)
{
    int64_t has_logs;

    if (!reply_integer(reply_at(reply, 0), &ret_backlog->count) ||
        !reply_integer(reply_at(reply, 1), &ret_backlog->oldest_ms) ||
        !reply_integer(reply_at(reply, 2), &ret_backlog->dropped) || !reply_integer(reply_at(reply, 3), &has_logs))
        return false;
    ret_backlog->has_logs = has_logs != 0;
    ret_backlog->refused_ms = has_logs > 1 ? has_logs - 1 : 0;
    return true;
}

static void tell_backlogs(const struct audit_keeper *keeper)
{
    struct audit_backlog all = {0};

    for (unsigned i = 0; i < keeper->part_count; i++) {
        const struct audit_backlog *backlog = &keeper->parts[i].backlog;

        all.count += backlog->count;
        all.dropped += backlog->dropped;
        if (backlog->oldest_ms > all.oldest_ms)
            all.oldest_ms = backlog->oldest_ms;
    }
    metric_set(METRIC_AUDIT_UNLOGGED, all.count);
    metric_set(METRIC_AUDIT_UNLOGGED_AGE, all.oldest_ms / MS_PER_S);
    metric_set(METRIC_AUDIT_DROPPED, all.dropped);
}

static void unlogged_found(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct audit_part *part = arg;

    if (result == STORE_OK && read_backlog(reply, &part->backlog)) {
        tell_backlogs(part->keeper);
        note_writer(part, part->backlog.refused_ms);
    }
    if (result != STORE_OK || reply->count <= 4 || part->keeper->is_ending) {
        part->is_taking = false;
        return;
    }
    struct audit_batch *batch = batch_begin(part, reply->count - 4, on_taken_over, part);
    for (size_t i = 4; i < reply->count; i++)
        take_over(part, reply_at(reply, i), batch);
}

/* keeper: NULL for a command. A log that cannot be written takes nothing over, and leaves that to others. */
static void call_unlogged(struct store *store, const struct audit_keeper *keeper, script_done *done, void *arg)
{
    struct script_args args;
    struct audit_published own;

    args_begin(&args);
    args_add(&args, !keeper || audit_log_trouble(keeper->log) ? TEXT("") : text_of(audit_log_chain(keeper->log)));
    args_add_int(&args, TAKE_AGE_MS);
    args_add_int(&args, TAKEN_MAX);
    if (keeper) {
        audit_log_head(keeper->log, &own);
        args_add(&args, text_of(audit_log_chain(keeper->log)));
        args_add(&args, text_of(audit_log_place(keeper->log)));
        args_add_int(&args, (int64_t)own.head.seq);
        args_add_int(&args, keeper->was_refused);
    }
    store_call_script(store, SCRIPT_audit_unlogged, SCRIPT_READS, args.count, args.argv, done, arg);
}

static void take(struct audit_part *part)
{
    if (part->is_taking || part->keeper->is_ending)
        return;
    part->is_taking = true;
    call_unlogged(part->store, part->keeper, unlogged_found, part);
}

struct backlog_call {
    audit_backlog_found *done;
    void *arg;
};

static void backlog_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct backlog_call call = *(struct backlog_call *)arg;
    struct audit_backlog backlog = {0};

    free(arg);
    if (result == STORE_OK && !read_backlog(reply, &backlog))
        result = STORE_UNAVAILABLE;
    call.done(call.arg, result, &backlog);
}

void audit_backlog_read(struct store *store, audit_backlog_found *done, void *arg)
{
    struct backlog_call *call = mem_alloc(sizeof *call);

    *call = (struct backlog_call){done, arg};
    call_unlogged(store, NULL, backlog_called, call);
}

/* Heads */

static struct noted *noted_of(struct audit_keeper *keeper, const char *chain)
{
    for (size_t i = 0; i < keeper->noted_count; i++)
        if (strcmp(keeper->noted[i].chain, chain) == 0)
            return &keeper->noted[i];
    keeper->noted = mem_resize(keeper->noted, (keeper->noted_count + 1) * sizeof *keeper->noted);
    struct noted *noted = &keeper->noted[keeper->noted_count++];
    *noted = (struct noted){0};
    memcpy(noted->chain, chain, sizeof noted->chain);
    return noted;
}

static void on_own_logged(UNUSED void *arg, UNUSED bool is_synced)
{
}

static void append_head(struct audit_keeper *keeper, const struct audit_published *other)
{
    char seq[24];
    struct audit_line line = {.time_ms = clock_wall_ms(),
                              .type = TEXT(AUDIT_LINE_HEAD),
                              .data_count = 4,
                              .data = {{TEXT("chain"), text_of(other->head.chain)},
                                       {TEXT("node"), text_of(other->node)},
                                       {TEXT("seq"), {0}},
                                       {TEXT("mac"), text_of(other->head.mac)}}};

    snprintf(seq, sizeof seq, "%" PRIu64, other->head.seq);
    line.data[2].value = text_of(seq);
    audit_log_append(keeper->log, &line, on_own_logged, keeper);
}

/* A chain that only notes heads itself brings nothing new; otherwise idle nodes would make each other write for ever.
 * A head that is lower than before was put back by somebody who writes to Redis. */
static void note_head(struct audit_part *part, struct text chain, struct text value)
{
    struct audit_keeper *keeper = part->keeper;
    struct audit_published other;

    if (!audit_published_read(keeper->keyring, chain, value, &other)) {
        if (store_may_log(part->store, &keeper->altered_pause))
            LOG(LOG_WARN, "the head of another audit log was altered in Redis", log_text("chain", chain));
        return;
    }
    struct noted *noted = noted_of(keeper, other.head.chain);
    if (noted->seq > 0 && other.event_seq <= noted->event_seq)
        return;
    noted->seq = other.head.seq;
    noted->event_seq = other.event_seq;
    append_head(keeper, &other);
}

static void note_heads(struct audit_part *part, const struct redis_reply *reply)
{
    struct text chain, value;

    for (size_t i = 0; i + 1 < reply->count; i += 2)
        if (reply_text(reply_at(reply, i), &chain) && reply_text(reply_at(reply, i + 1), &value))
            note_head(part, chain, value);
}

static void heads_exchanged(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct audit_part *part = arg;

    part->is_exchanging = false;
    part->has_published &= result == STORE_OK;
    if (result == STORE_OK && !part->keeper->is_ending)
        note_heads(part, reply);
}

static void exchange_heads(struct audit_part *part, script_done *done)
{
    const struct audit_keeper *keeper = part->keeper;
    struct audit_published own;
    struct script_args args;
    struct buf head = BUF_FIXED(512);

    audit_log_head(keeper->log, &own);
    if (own.head.seq > 0 && !audit_log_held(keeper->log))
        audit_published_print(keeper->keyring, &own, &head);
    args_begin(&args);
    args_add(&args, text_of(own.head.chain));
    args_add(&args, buf_text(&head));
    args_add_int(&args, HEADS_NOTED);
    if (keeper->is_ending)
        args_add(&args, text_of(audit_log_place(keeper->log)));
    part->is_exchanging = true;
    part->has_published |= head.len > 0;
    store_call_script(part->store, SCRIPT_audit_heads, SCRIPT_READS, args.count, args.argv, done, part);
}

static void heads_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    size_t count = result == STORE_OK ? reply->count : 0;
    struct text *heads = mem_alloc((count + 1) * sizeof *heads);

    for (size_t i = 0; i < count && result == STORE_OK; i++)
        if (!reply_text(reply_at(reply, i), &heads[i]))
            result = STORE_UNAVAILABLE;
    ((audit_heads_found *)asked->done)(asked->arg, result, result == STORE_OK ? heads : NULL, count / 2);
    free(heads);
}

/* Under a name that no chain has, so that all are others. */
void audit_heads_read(struct store *store, audit_heads_found *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, TEXT("-"));
    args_add(&args, TEXT(""));
    args_add_int(&args, 1000);
    verb_ask(store, SCRIPT_audit_heads, SCRIPT_READS, &args, heads_answer, (verb_done *)done, arg);
}

/* Life */

/* A line about the log itself. */
static void append_own(struct audit_keeper *keeper, struct text type, audit_logged *done)
{
    const struct audit_line line = {.time_ms = clock_wall_ms(), .type = type};

    audit_log_append(keeper->log, &line, done, keeper);
}

/* Publishes the first head at once: from then on commands know that a log is written. */
static void look_at_part(struct audit_part *part, bool has_trouble)
{
    uint64_t ticks = part->keeper->ticks;

    if (!store_is_ready(part->store))
        return;
    if (ticks % TAKE_EVERY == 0 || !part->has_answered)
        take(part);
    if (has_trouble)
        return;
    if ((!part->has_published || ticks % HEADS_EVERY == 0) && !part->is_exchanging)
        exchange_heads(part, heads_exchanged);
}

/* Whether it may write is not known yet, or it must not. What waits before any store is ready are endings that Redis
 * has lost: no store becomes ready before they are in the log. */
static void ask(struct audit_keeper *keeper)
{
    bool is_any_ready = false;

    for (unsigned i = 0; i < keeper->part_count; i++) {
        if (!store_is_ready(keeper->parts[i].store))
            continue;
        is_any_ready = true;
        take(&keeper->parts[i]);
    }
    if (!is_any_ready && audit_log_waits(keeper->log))
        audit_log_hold(keeper->log, NULL);
}

static void on_tick(uv_timer_t *timer)
{
    struct audit_keeper *keeper = timer->data;
    bool has_trouble = audit_log_trouble(keeper->log);

    if (audit_log_held(keeper->log)) {
        ask(keeper);
        return;
    }
    if (keeper->ticks++ == 0)
        append_own(keeper, TEXT(AUDIT_LINE_STARTED), on_own_logged);
    else if (has_trouble && keeper->ticks % RESUME_EVERY == 0)
        append_own(keeper, TEXT(AUDIT_LINE_RESUMED), on_own_logged);
    else
        audit_log_look(keeper->log);
    for (unsigned i = 0; i < keeper->part_count; i++)
        look_at_part(&keeper->parts[i], has_trouble);
}

void audit_keeper_hurry(struct audit_keeper *keeper)
{
    if (keeper->is_ending || audit_log_held(keeper->log))
        return;
    for (unsigned i = 0; i < keeper->part_count; i++) {
        take(&keeper->parts[i]);
        if (!keeper->parts[i].is_exchanging)
            exchange_heads(&keeper->parts[i], heads_exchanged);
    }
}

static const char *log_chain(void *arg)
{
    const struct audit_part *part = arg;

    return audit_log_chain(part->keeper->log);
}

static const char *log_trouble(void *arg)
{
    const struct audit_part *part = arg;

    return audit_log_trouble(part->keeper->log);
}

static void part_begin(struct audit_part *part, struct audit_keeper *keeper, struct store *store)
{
    *part = (struct audit_part){
        .keeper = keeper,
        .store = store,
        .log = {.chain = log_chain, .trouble = log_trouble, .append = log_events, .arg = part},
    };
    store_log_to(store, &part->log);
}

struct audit_keeper *audit_keeper_create(const struct partitions *partitions, struct audit_log *log)
{
    struct store *first = partitions_at(partitions, 0);
    unsigned count = partitions_count(partitions);
    struct audit_keeper *keeper = mem_alloc(sizeof *keeper + count * sizeof *keeper->parts);

    keeper->log = log;
    keeper->keyring = store_keyring(first);
    keeper->part_count = count;
    for (unsigned i = 0; i < count; i++)
        part_begin(&keeper->parts[i], keeper, partitions_at(partitions, i));
    CHECK(uv_timer_init(store_loop(first), &keeper->timer) == 0);
    keeper->timer.data = keeper;
    CHECK(uv_timer_start(&keeper->timer, on_tick, FIRST_TICK_MS, audit_log_held(log) ? FIRST_TICK_MS : TICK_MS) == 0);
    audit_log_watch(log, on_synced, keeper);
    return keeper;
}

/* Ending */

static void on_timer_closed(uv_handle_t *handle)
{
    struct audit_keeper *keeper = handle->data;

    keeper->ended(keeper->ended_arg);
}

/* With every partition that is ready. False: with none. */
static bool exchange_all(struct audit_keeper *keeper, script_done *done)
{
    for (unsigned i = 0; i < keeper->part_count; i++) {
        if (!store_is_ready(keeper->parts[i].store))
            continue;
        keeper->exchanges++;
        exchange_heads(&keeper->parts[i], done);
    }
    return keeper->exchanges > 0;
}

static void on_last_published(void *arg, UNUSED enum store_result result, UNUSED const struct redis_reply *reply)
{
    struct audit_keeper *keeper = ((struct audit_part *)arg)->keeper;

    if (--keeper->exchanges == 0)
        uv_close((uv_handle_t *)&keeper->timer, on_timer_closed);
}

static void on_end_logged(void *arg, UNUSED bool is_synced)
{
    struct audit_keeper *keeper = arg;

    if (!exchange_all(keeper, on_last_published))
        uv_close((uv_handle_t *)&keeper->timer, on_timer_closed);
}

static void on_last_noted(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct audit_part *part = arg;

    if (result == STORE_OK)
        note_heads(part, reply);
    if (--part->keeper->exchanges == 0)
        append_own(part->keeper, TEXT(AUDIT_LINE_ENDED), on_end_logged);
}

/* Notes the others' heads first: if all nodes stop, the last one knows the ends of all other logs. */
void audit_keeper_end(struct audit_keeper *keeper, void (*ended)(void *arg), void *arg)
{
    keeper->is_ending = true;
    keeper->ended = ended;
    keeper->ended_arg = arg;
    CHECK(uv_timer_stop(&keeper->timer) == 0);
    if (audit_log_held(keeper->log))
        audit_log_hold(keeper->log, UNASKED);
    if (!exchange_all(keeper, on_last_noted))
        append_own(keeper, TEXT(AUDIT_LINE_ENDED), on_end_logged);
}

void audit_keeper_destroy(struct audit_keeper *keeper)
{
    if (!keeper)
        return;
    audit_log_watch(keeper->log, NULL, NULL);
    for (unsigned i = 0; i < keeper->part_count; i++)
        free(keeper->parts[i].copies);
    free(keeper->noted);
    free(keeper);
}

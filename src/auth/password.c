#include "auth/password.h"
#include "base/background.h"
#include "base/callback.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/list.h"
#include "base/loss.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/secure.h"
#include "password_hash_internal.h"

#include <stdlib.h>
#include <string.h>

/* Until the first one is measured. */
static const uint64_t HASH_NS_AT_FIRST = 300 * UINT64_C(1000000);

enum { RETRY_AFTER_MAX_S = 60, FAILURE_PAUSE_MS = 10000 };

struct password_pool {
    uv_timer_t finisher; /* runs as soon as `finished` holds something */
    struct keyring *keyring;
    struct list running, finished;
    struct password_queue {
        struct list waiting; /* by round */
        unsigned count;
        uint64_t round; /* of the last job that left */
    } parts[PASSWORD_PARTS];
    enum password_part last; /* the part whose hash was started last */
    unsigned running_count;
    unsigned parallel, queue;
    uint64_t hash_ns; /* recent time per hash */
    struct log_pause failure_pause;
    bool is_shut;
    struct callback closed; /* set while closing */
};

struct job {
    struct list link; /* in one of the pool's lists */
    struct background background;
    struct password_pool *pool;
    struct password_turn turn;
    uint64_t round;             /* the n-th job of its source waits n - 1 rounds */
    uint64_t made_ns, begun_ns; /* begun: running */
    struct password_hash hash;
    uint8_t peppered[KEYRING_DIGEST_BYTES];
    uint8_t peppered_as_typed[KEYRING_DIGEST_BYTES];
    bool has_other_form; /* as typed it differs from its prepared form; older hashes are of the typed one */
    size_t generation;   /* of the pepper */
    char user[ID_TEXT_BYTES];
    size_t user_len;
    bool can_match;  /* the user and the pepper exist */
    bool is_derived; /* everything that was to be derived */
    uint8_t derived[PASSWORD_DERIVED_BYTES], derived_as_typed[PASSWORD_DERIVED_BYTES];
    enum password_result result;
    password_verified *done;
    password_rehashed *rehashed; /* instead of done, for a new hash */
    void *arg;
};

struct password_pool *password_pool_create(uv_loop_t *loop, struct keyring *keyring, unsigned parallel, unsigned queue)
{
    REQUIRE(parallel > 0);
    struct password_pool *pool = mem_alloc(sizeof *pool);
    CHECK(uv_timer_init(loop, &pool->finisher) == 0);
    pool->finisher.data = pool;
    pool->keyring = keyring;
    pool->parallel = parallel;
    pool->queue = queue;
    pool->hash_ns = HASH_NS_AT_FIRST;
    list_init(&pool->running);
    list_init(&pool->finished);
    for (size_t i = 0; i < PASSWORD_PARTS; i++)
        list_init(&pool->parts[i].waiting);
    return pool;
}

static void pool_closed(uv_handle_t *handle)
{
    struct password_pool *pool = handle->data;
    const struct callback closed = pool->closed;
    free(pool);
    callback_run(closed);
}

static unsigned waiting_count(const struct password_pool *pool)
{
    return pool->parts[PASSWORD_STRANGER].count + pool->parts[PASSWORD_KNOWN].count;
}

static void close_if_idle(struct password_pool *pool)
{
    if (pool->closed.run && list_empty(&pool->running) && waiting_count(pool) == 0 && list_empty(&pool->finished) &&
        !uv_is_closing((uv_handle_t *)&pool->finisher))
        uv_close((uv_handle_t *)&pool->finisher, pool_closed);
}

static void tell(struct job *job)
{
    char hash[PASSWORD_HASH_BYTES];
    password_verified *done = job->done;
    password_rehashed *rehashed = job->rehashed;
    void *arg = job->arg;
    const enum password_result result = job->result;
    INVARIANT(!done != !rehashed);
    if (rehashed && result == PASSWORD_MATCHES)
        password_hash_print(&job->hash, hash);
    secure_wipe(job, sizeof *job);
    free(job);
    if (rehashed)
        rehashed(arg, result == PASSWORD_MATCHES ? hash : NULL);
    else
        done(arg, result);
}

static void deliver_finished(uv_timer_t *timer)
{
    struct password_pool *pool = timer->data;
    struct list *node;
    while ((node = list_take(&pool->finished)))
        tell(LIST_ENTRY(node, struct job, link));
    close_if_idle(pool);
}

/* Results are delivered by a timer, never inside the call that starts a job. */
static void finish(struct job *job, enum password_result result)
{
    struct password_pool *pool = job->pool;
    job->result = result;
    list_remove(&job->link);
    list_append(&pool->finished, &job->link);
    CHECK(uv_timer_start(&pool->finisher, deliver_finished, 0, 0) == 0);
}

/* On a thread of its own; touches only the job's memory. The second hash is computed whenever the password as typed has
 * two forms, whatever the user and the first result, so that the time depends only on what was typed. */
static void run_job(struct background *background)
{
    struct job *job = LIST_ENTRY(background, struct job, background);
    job->is_derived =
        password_hash_derive(&job->hash, job->peppered, job->derived) &&
        (!job->has_other_form || password_hash_derive(&job->hash, job->peppered_as_typed, job->derived_as_typed));
}

static void bind_to_user(struct job *job, uint8_t derived[PASSWORD_DERIVED_BYTES])
{
    if (job->hash.is_bound)
        password_hash_bind(job->pool->keyring, job->generation, (struct text){job->user, job->user_len}, derived);
}

static bool is_hash(struct job *job, uint8_t derived[PASSWORD_DERIVED_BYTES])
{
    bind_to_user(job, derived);
    return secure_equal((struct text){(char *)derived, PASSWORD_DERIVED_BYTES},
                        (struct text){(char *)job->hash.derived, sizeof job->hash.derived});
}

static enum password_result judge(struct job *job)
{
    if (!job->is_derived)
        return PASSWORD_OVERLOADED;
    if (job->rehashed) {
        bind_to_user(job, job->derived);
        memcpy(job->hash.derived, job->derived, sizeof job->hash.derived);
        return PASSWORD_MATCHES;
    }
    bool matches = is_hash(job, job->derived);
    if (job->has_other_form)
        matches |= is_hash(job, job->derived_as_typed);
    return matches && job->can_match ? PASSWORD_MATCHES : PASSWORD_DIFFERS;
}

/* The machine has no memory or no thread for it, however few wait. */
static void note_failure(struct password_pool *pool)
{
    if (log_pause_is_over(&pool->failure_pause, uv_hrtime() / CLOCK_NS_PER_MS, FAILURE_PAUSE_MS))
        LOSS_TELL(LOSS_HASH_MEMORY, log_int("suppressed", pool->failure_pause.suppressed));
    else
        metric_add(METRIC_PASSWORD_FAILED, 1);
}

static void job_ran(struct background *background);

static void start(struct job *job)
{
    struct password_pool *pool = job->pool;
    REQUIRE(pool->running_count < pool->parallel);
    pool->running_count++;
    pool->last = job->turn.part;
    job->begun_ns = uv_hrtime();
    histogram_observe(HISTOGRAM_PASSWORD_QUEUE, job->begun_ns - job->made_ns);
    list_append(&pool->running, &job->link);
    background_start(&job->background, pool->finisher.loop, run_job, job_ran);
}

static void leave_part(struct job *job)
{
    INVARIANT(job->pool->parts[job->turn.part].count > 0);
    job->pool->parts[job->turn.part].count--;
    list_remove(&job->link);
}

/* The parts alternate while both have jobs waiting. */
static struct password_queue *part_to_serve(struct password_pool *pool)
{
    struct password_queue *other = &pool->parts[pool->last == PASSWORD_KNOWN ? PASSWORD_STRANGER : PASSWORD_KNOWN];
    return other->count > 0 ? other : &pool->parts[pool->last];
}

static void start_waiting(struct password_pool *pool)
{
    struct password_queue *part = part_to_serve(pool);
    if (part->count == 0 || pool->running_count >= pool->parallel)
        return;
    struct job *job = LIST_ENTRY(list_first(&part->waiting), struct job, link);
    part->round = job->round;
    leave_part(job);
    start(job);
}

/* A moving average, so that one slow hash changes little. */
static void note_duration(struct password_pool *pool, uint64_t hash_ns)
{
    histogram_observe(HISTOGRAM_PASSWORD_HASH, hash_ns);
    pool->hash_ns = (7 * pool->hash_ns + hash_ns) / 8;
}

uint32_t password_pool_retry_after_s(const struct password_pool *pool)
{
    const uint64_t all_ns = (waiting_count(pool) + 1) * pool->hash_ns / pool->parallel;
    const uint64_t seconds = 1 + all_ns / UINT64_C(1000000000);
    return (uint32_t)(seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S);
}

static void job_ran(struct background *background)
{
    struct job *job = LIST_ENTRY(background, struct job, background);
    struct password_pool *pool = job->pool;
    INVARIANT(pool->running_count > 0);
    pool->running_count--;
    metric_add(METRIC_PASSWORD_QUEUE, -1);
    job->result = background->status == 0 ? judge(job) : PASSWORD_OVERLOADED;
    if (background->status == 0)
        note_duration(pool, uv_hrtime() - job->begun_ns);
    if (job->result == PASSWORD_OVERLOADED)
        note_failure(pool);
    finish(job, job->result);
    start_waiting(pool);
}

static void refuse(struct job *job)
{
    metric_add(METRIC_PASSWORD_OVERLOADED, 1);
    finish(job, PASSWORD_OVERLOADED);
}

/* One round after the last job of its source, and in no round that is over. */
static uint64_t round_of(const struct password_queue *part, const struct job *job)
{
    uint64_t round = part->round;
    for (struct list *node = part->waiting.next; node != &part->waiting; node = node->next) {
        const struct job *other = LIST_ENTRY(node, struct job, link);
        if (other->turn.source == job->turn.source && other->round >= round)
            round = other->round + 1;
    }
    return round;
}

/* Behind all jobs of its round and of earlier ones. */
static void insert_by_round(struct password_queue *part, struct job *job)
{
    struct list *node = part->waiting.prev;
    while (node != &part->waiting && LIST_ENTRY(node, struct job, link)->round > job->round)
        node = node->prev;
    list_append(node->next, &job->link);
    part->count++;
}

/* False: the part is full, and no source has more waiting than this one. */
static bool make_room(struct password_pool *pool, struct password_queue *part, const struct job *job)
{
    if (part->count < pool->queue)
        return true;
    struct job *last = part->count > 0 ? LIST_ENTRY(part->waiting.prev, struct job, link) : NULL;
    if (!last || last->round <= job->round)
        return false;
    leave_part(last);
    metric_add(METRIC_PASSWORD_QUEUE, -1);
    refuse(last);
    return true;
}

static void enqueue(struct job *job)
{
    struct password_pool *pool = job->pool;
    struct password_queue *part = &pool->parts[job->turn.part];
    if (pool->is_shut) {
        finish(job, PASSWORD_CANCELLED);
        return;
    }
    if (pool->running_count < pool->parallel) {
        metric_add(METRIC_PASSWORD_QUEUE, 1);
        start(job);
        return;
    }
    job->round = round_of(part, job);
    if (!make_room(pool, part, job)) {
        refuse(job);
        return;
    }
    metric_add(METRIC_PASSWORD_QUEUE, 1);
    insert_by_round(part, job);
}

static void pepper(struct keyring *keyring, size_t generation, struct text password, struct job *job)
{
    char storage[PASSWORD_FORM_MAX_BYTES];
    struct buf prepared = BUF_OVER(storage, sizeof storage);
    account_prepare_password(password, &prepared);
    keyring_digest(keyring, KEYRING_PASSWORD, generation, buf_text(&prepared), job->peppered);
    keyring_digest(keyring, KEYRING_PASSWORD, generation, password, job->peppered_as_typed);
    job->has_other_form = !text_equal(buf_text(&prepared), password);
    secure_wipe(storage, sizeof storage);
}

static struct job *make_job(struct password_pool *pool, const struct password_turn *turn, struct text user, void *arg)
{
    REQUIRE(!uv_is_closing((uv_handle_t *)&pool->finisher));
    REQUIRE(user.len < ID_TEXT_BYTES);
    struct job *job = mem_alloc(sizeof *job);
    job->user_len = user.len;
    if (user.len > 0)
        memcpy(job->user, user.ptr, user.len);
    list_init(&job->link);
    job->pool = pool;
    job->turn = *turn;
    job->made_ns = uv_hrtime();
    job->result = PASSWORD_CANCELLED;
    job->arg = arg;
    return job;
}

void password_verify(struct password_pool *pool, const struct password_turn *turn, struct text password,
                     struct text user, const char *hash, password_verified *done, void *arg)
{
    struct job *job = make_job(pool, turn, user, arg);
    job->done = done;
    job->can_match = hash && password_hash_parse(text_of(hash), &job->hash) &&
                     password_pepper_find(pool->keyring, job->hash.pepper_name, &job->generation);
    if (!job->can_match)
        password_hash_dummy(&job->hash);
    pepper(pool->keyring, job->generation, password, job);
    enqueue(job);
}

/* Everything of a new hash except what scrypt derives. */
static void begin_hash(struct keyring *keyring, struct password_hash *ret_hash)
{
    *ret_hash = (struct password_hash){.cost = PASSWORD_COST_DEFAULT, .is_bound = true};
    random_secret(ret_hash->salt, sizeof ret_hash->salt);
    password_pepper_name(keyring, 0, ret_hash->pepper_name);
}

void password_rehash(struct password_pool *pool, const struct password_turn *turn, struct text password,
                     struct text user, password_rehashed *done, void *arg)
{
    struct job *job = make_job(pool, turn, user, arg);
    job->rehashed = done;
    begin_hash(pool->keyring, &job->hash);
    pepper(pool->keyring, 0, password, job);
    job->has_other_form = false;
    enqueue(job);
}

void password_pool_shut(struct password_pool *pool)
{
    pool->is_shut = true;
    for (size_t i = 0; i < PASSWORD_PARTS; i++) {
        struct list *node;
        while ((node = list_first(&pool->parts[i].waiting))) {
            struct job *job = LIST_ENTRY(node, struct job, link);
            leave_part(job);
            metric_add(METRIC_PASSWORD_QUEUE, -1);
            finish(job, PASSWORD_CANCELLED);
        }
    }
}

void password_pool_close(struct password_pool *pool, void (*closed)(void *arg), void *arg)
{
    REQUIRE(!pool->closed.run);
    pool->closed = (struct callback){closed, arg};
    password_pool_shut(pool);
    close_if_idle(pool);
}

void password_hash_now(struct keyring *keyring, struct text user, struct text password,
                       char ret_hash[PASSWORD_HASH_BYTES])
{
    struct password_hash hash;
    char storage[PASSWORD_FORM_MAX_BYTES];
    uint8_t peppered[KEYRING_DIGEST_BYTES];
    struct buf prepared = BUF_OVER(storage, sizeof storage);
    account_prepare_password(password, &prepared);
    begin_hash(keyring, &hash);
    keyring_digest(keyring, KEYRING_PASSWORD, 0, buf_text(&prepared), peppered);
    secure_wipe(storage, sizeof storage);
    CHECK(password_hash_derive(&hash, peppered, hash.derived));
    password_hash_bind(keyring, 0, user, hash.derived);
    password_hash_print(&hash, ret_hash);
    secure_wipe(peppered, sizeof peppered);
}

bool password_hash_generation(struct keyring *keyring, const char *hash, size_t *ret_generation)
{
    struct password_hash parsed;
    return password_hash_parse(text_of(hash), &parsed) &&
           password_pepper_find(keyring, parsed.pepper_name, ret_generation);
}

bool password_hash_is_bound(const char *hash)
{
    struct password_hash parsed;
    return password_hash_parse(text_of(hash), &parsed) && parsed.is_bound;
}

bool password_hash_bind_older(struct keyring *keyring, struct text user, const char *hash,
                              char ret_hash[PASSWORD_HASH_BYTES])
{
    struct password_hash parsed;
    size_t generation;
    if (!password_hash_parse(text_of(hash), &parsed) || parsed.is_bound ||
        !password_pepper_find(keyring, parsed.pepper_name, &generation))
        return false;
    password_hash_bind(keyring, generation, user, parsed.derived);
    parsed.is_bound = true;
    password_hash_print(&parsed, ret_hash);
    return true;
}

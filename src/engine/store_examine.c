#include "store_examine.h"
#include "engine/access.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/limits.h"
#include "engine/outcome.h"
#include "engine/readiness.h"
#include "engine/record.h"
#include "redis/sentinel.h"
#include "state.h"
#include "engine/fitness.h"
#include "engine/store.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A caller of store_examine(). */
struct examiner {
    struct list node;
    uint64_t deadline_ms;
    void (*done)(void *arg, enum store_result result, const struct store_facts *facts);
    void *arg;
};

/* Of a cluster's nodes only. */
static const char NODE_TIMEOUT[] = "cluster-node-timeout", FULL_COVERAGE[] = "cluster-require-full-coverage";

/* Settings that only CONFIG GET shows, or shows more exactly than INFO. One command each: before 7.0 CONFIG GET takes
 * one name, and an old Redis must get as far as being reported as too old. */
static const struct config_setting {
    const char *name, *fit; /* fit NULL: the fact is a number, and only read where a replica may take over */
    size_t fact;
    bool for_doctor; /* for doctor only: Redis is fit whatever it is, even if CONFIG GET refuses it */
} CONFIG_SETTINGS[CONFIG_SETTING_COUNT] = {
    {"appendonly", "yes", offsetof(struct store_facts, appendonly), false},
    {"appendfsync", "always", offsetof(struct store_facts, appendfsync_always), false},
    {"no-appendfsync-on-rewrite", "no", offsetof(struct store_facts, no_fsync_on_rewrite_off), false},
    {"maxmemory-policy", "noeviction", offsetof(struct store_facts, noeviction), false},
    {"min-replicas-to-write", NULL, offsetof(struct store_facts, replicas_to_write), false},
    {"min-replicas-max-lag", NULL, offsetof(struct store_facts, replica_lag_s), false},
    {NODE_TIMEOUT, NULL, offsetof(struct store_facts, node_timeout_ms), false},
    {FULL_COVERAGE, "no", offsetof(struct store_facts, full_coverage_off), true},
    {"save", "", offsetof(struct store_facts, save_off), true},
    {"timeout", "0", offsetof(struct store_facts, idle_timeout_off), true},
    {"stop-writes-on-bgsave-error", "no", offsetof(struct store_facts, stop_writes_on_failure_off), true},
};

static void ask_info(struct store *store);
static void config_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void replay_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void time_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void losses_answered(void *arg, enum store_result result, const struct redis_reply *reply);
static void schema_answered(void *arg, enum store_result result, const struct redis_reply *reply);
static void store_id_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void keys_answered(void *arg, enum store_result result, const struct redis_reply *reply);

static void on_probe(uv_timer_t *probe);

void examination_init(struct store *store)
{
    store->on_probe = on_probe;
    list_init(&store->examination.waiting);
    for (unsigned row = 0; row < CONFIG_SETTING_COUNT; row++)
        store->examination.config_reads[row] = (struct examined_row){store, row};
    for (unsigned row = 0; row < INFO_SECTION_COUNT; row++)
        store->examination.info_reads[row] = (struct examined_row){store, row};
}

static bool is_asked(const struct store *store, const struct config_setting *setting)
{
    if (setting->name == NODE_TIMEOUT || setting->name == FULL_COVERAGE)
        return store->settings.resolver != NULL;
    return setting->fit || store->resolver;
}

static void ask_config(struct store *store)
{
    struct examination *e = &store->examination;

    for (unsigned row = 0; row < CONFIG_SETTING_COUNT; row++) {
        if (!is_asked(store, &CONFIG_SETTINGS[row]))
            continue;
        e->due++;
        redis_link_call(store->changes, 3,
                        (struct text[]){TEXT("CONFIG"), TEXT("GET"), text_of(CONFIG_SETTINGS[row].name)},
                        config_answered, &e->config_reads[row]);
    }
}

/* Whether Redis would let `default` write a record of ours. */
static void call_replay(struct store *store, redis_done *done)
{
    char name[REDIS_PREFIX_MAX_BYTES + sizeof "store"];

    snprintf(name, sizeof name, "%sstore", store->prefix);
    redis_link_call(store->changes, 7,
                    (struct text[]){TEXT("ACL"), TEXT("DRYRUN"), TEXT("default"), TEXT("HSET"), text_of(name),
                                    TEXT("field"), TEXT("value")},
                    done, store);
}

static void ask_replay(struct store *store)
{
    store->examination.due++;
    call_replay(store, replay_answered);
}

void examination_start(struct store *store)
{
    struct examination *e = &store->examination;
    char schema[16], storage[REDIS_PREFIX_MAX_BYTES];
    struct buf beside;

    if (e->is_running || store->is_closing)
        return;
    e->is_running = true;
    e->has_failed = e->found_no_store = e->must_repeat = false;
    e->facts = (struct store_facts){.config_readable = true,
                                    .durability_asserted = store->settings.durability_asserted,
                                    .is_cluster = store->settings.resolver != NULL};
    e->refusal = NULL;
    e->asked = redis_clock_question();
    e->due = 4;
    redis_link_call(store->changes, 1, (struct text[]){TEXT("TIME")}, time_answered, store);
    ask_info(store);
    ask_config(store);
    ask_replay(store);
    /* Before the claim, whose refusal counts. */
    script_call_probe(store, SCRIPT_store_losses, 0, NULL, losses_answered, store);
    snprintf(schema, sizeof schema, "%d", STORE_SCHEMA);
    buf_init_fixed(&beside, storage, sizeof storage);
    store_print_prefix_beside(store, &beside);
    script_call_probe(
        store, SCRIPT_schema_claim, 3,
        (struct text[]){text_of(schema), identity_offered(lease_identity(store->lease)), buf_text(&beside)},
        schema_answered, store);
    if (store->settings.keyring) {
        e->due++;
        record_keys_ask(store, keys_answered);
    }
}

static void examiners_tell(struct store *store, enum store_result result, const struct store_facts *facts)
{
    struct list *node;

    while ((node = list_first(&store->examination.waiting))) {
        struct examiner *examiner = LIST_ENTRY(node, struct examiner, node);

        list_remove(node);
        examiner->done(examiner->arg, result, facts);
        free(examiner);
    }
}

static void take_census(struct store *store)
{
    struct store_facts *facts = &store->examination.facts;
    struct sentinel_census census;

    facts->replicas_known = fence_replicas(lease_fence(store->lease));
    facts->replicas_usual = fence_replicas_usual(lease_fence(store->lease));
    facts->min_replicas = store->settings.min_replicas;
    facts->timeout_ms = store->settings.timeout_ms;
    facts->lease_ms = lease_member_ms(store->lease);
    /* Settings that were not seen must not shorten the delay of a barrier that is under way. */
    if (!store->examination.has_failed && facts->config_readable)
        fence_on_settings(lease_fence(store->lease), facts->node_timeout_ms);
    if (!store->sentinel)
        return;
    census = redis_sentinel_census(store->sentinel);
    facts->sentinels = census.asked;
    facts->sentinels_knowing = census.knowing;
    facts->sentinels_agreeing = census.agreeing;
    facts->sentinel_quorum = census.quorum;
    facts->sentinels_known = census.others + 1;
    snprintf(facts->sentinel_trouble, sizeof facts->sentinel_trouble, "%s", census.trouble);
}

static unsigned kinds_judged(const struct store *store)
{
    unsigned all = store->was_fit ? FITNESS_ALL & ~(unsigned)FITNESS_START : FITNESS_ALL;

    return store->settings.unsafe_redis ? FITNESS_UNSAFE : all;
}

/* Nodes that serve go on: replicas that are added or replaced, or that a cluster moves, must not stop them all. */
static void note_replicas(struct store *store)
{
    const struct store_facts *facts = &store->examination.facts;
    const char *why = store->was_fit && !store->settings.unsafe_redis ? fitness_breach(facts, FITNESS_START) : NULL;

    if (why && !store->is_warned)
        LOG(LOG_WARN, "fewer than half of the replicas acknowledge each lease", log_str("why", why),
            log_int("replicas", facts->replicas_usual), log_partition(store->prefix));
    store->is_warned = why;
}

static void part_done(struct store *store)
{
    struct examination *e = &store->examination;

    INVARIANT(e->is_running && e->due > 0);
    if (--e->due > 0)
        return;
    e->is_running = false;
    if (store->is_closing)
        return; /* store_close() ends those who wait */
    if (e->must_repeat && store->changes_up) {
        examination_start(store);
        return;
    }

    take_census(store);
    snprintf(store->server, sizeof store->server, "%s", e->facts.server);
    const char *unfit = fitness_breach(&e->facts, kinds_judged(store));
    if (unfit && !e->facts.writable && e->refusal)
        unfit = e->refusal;
    if (e->has_failed)
        unfit = "Redis did not answer when it was examined: check its load, and that its ACL allows INFO and TIME.";
    if (e->facts.writable)
        store_note_full(store, e->facts.full);
    store->is_short = e->facts.is_short;
    store->was_fit |= !unfit;
    if (!e->has_failed)
        note_replicas(store);
    store_judged(store, unfit);
    if (e->has_failed && !store->changes_up)
        return; /* those who wait get the next connection's result, or time out */
    examiners_tell(store, e->has_failed ? STORE_UNAVAILABLE : STORE_OK, e->has_failed ? NULL : &e->facts);
}

/* Counts lines like "slave0:ip=…,port=…,state=online,offset=…,lag=0" that contain state; "": any state. */
static int64_t count_replicas(struct text info, const char *state)
{
    struct text line;
    int64_t count = 0;

    while (text_next(&info, '\n', &line)) {
        bool is_replica = text_starts_with(line, TEXT("slave")) && line.len > strlen("slave") &&
                          line.ptr[strlen("slave")] >= '0' && line.ptr[strlen("slave")] <= '9';
        count += is_replica && memmem(line.ptr, line.len, state, strlen(state));
    }
    return count;
}

/* Valkey reports the version of Redis that it is compatible with, and its own. */
static void note_server(struct store *store, struct text info)
{
    struct store_facts *facts = &store->examination.facts;
    struct text redis = reply_info_value(info, TEXT("redis_version"));
    struct text valkey = reply_info_value(info, TEXT("valkey_version"));

    facts->is_of_cluster = text_equal(reply_info_value(info, TEXT("redis_mode")), TEXT("cluster")) ||
                           text_equal(reply_info_value(info, TEXT("server_mode")), TEXT("cluster"));
    snprintf(facts->redis_version, sizeof facts->redis_version, "%.*s", TEXT_ARG(redis));
    snprintf(facts->server, sizeof facts->server, valkey.len > 0 ? "Valkey %.*s" : "Redis %.*s",
             TEXT_ARG(valkey.len > 0 ? valkey : redis));
}

static void note_replication(struct store *store, struct text info)
{
    store->examination.facts.replicas = count_replicas(info, ",state=online,");
    lease_fence(store->lease)->replicas_listed = count_replicas(info, "");
}

/* CONFIG GET answers later and knows better. If it is forbidden, these two are all there is. */
static void note_persistence(struct store *store, struct text info)
{
    store->examination.facts.appendonly = text_equal(reply_info_value(info, TEXT("aof_enabled")), TEXT("1"));
}

static void note_memory(struct store *store, struct text info)
{
    struct text policy = reply_info_value(info, TEXT("maxmemory_policy"));

    uint64_t used, most;

    store->examination.facts.noeviction = text_equal(policy, TEXT("noeviction"));
    store->examination.facts.is_short = text_to_u64(reply_info_value(info, TEXT("used_memory")), INT64_MAX, &used) &&
                                        text_to_u64(reply_info_value(info, TEXT("maxmemory")), INT64_MAX, &most) &&
                                        most > 0 && used > most / 10 * 9;
}

/* One command each, because an ACL can allow some and forbid others. */
static const struct info_section {
    const char *name;
    void (*note)(struct store *store, struct text info);
    size_t hidden; /* of store_facts: set if it is forbidden; 0: nothing works without it */
} INFO_SECTIONS[INFO_SECTION_COUNT] = {
    {"server", note_server, 0},
    {"replication", note_replication, offsetof(struct store_facts, replication_hidden)},
    {"persistence", note_persistence, offsetof(struct store_facts, persistence_hidden)},
    {"memory", note_memory, offsetof(struct store_facts, memory_hidden)},
};

static void info_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    const struct examined_row *read = arg;
    const struct info_section *section = &INFO_SECTIONS[read->row];
    struct examination *e = &read->store->examination;
    bool may_be_hidden = read->store->settings.durability_asserted && section->hidden > 0;
    struct text info;

    if (may_be_hidden && outcome == REDIS_REPLIED && reply->type == REPLY_ERROR)
        *((bool *)(void *)((char *)&e->facts + section->hidden)) = true;
    else if (store_outcome(read->store, outcome, reply) == STORE_OK && reply_text(reply, &info))
        section->note(read->store, info);
    else
        e->has_failed = true;
    part_done(read->store);
}

static void ask_info(struct store *store)
{
    struct examination *e = &store->examination;

    for (unsigned row = 0; row < INFO_SECTION_COUNT; row++) {
        e->due++;
        redis_link_call(store->changes, 2, (struct text[]){TEXT("INFO"), text_of(INFO_SECTIONS[row].name)},
                        info_answered, &e->info_reads[row]);
    }
}

static int64_t config_number(struct text value)
{
    uint64_t number;

    return text_to_u64(value, INT32_MAX, &number) ? (int64_t)number : 0;
}

static void config_note(const struct config_setting *setting, struct text value, struct store_facts *facts)
{
    void *fact = (char *)facts + setting->fact;

    if (setting->fit)
        *(bool *)fact = text_equal(value, text_of(setting->fit));
    else
        *(int64_t *)fact = config_number(value);
}

static void config_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    const struct examined_row *read = arg;
    const struct config_setting *setting = &CONFIG_SETTINGS[read->row];
    struct examination *e = &read->store->examination;
    struct text value;

    if (outcome != REDIS_REPLIED)
        e->has_failed = true;
    else if (!reply_text(reply_at(reply, 1), &value))
        e->facts.config_readable &= setting->for_doctor;
    else
        config_note(setting, value, &e->facts);
    part_done(read->store);
}

/* "OK", or a string that says why not. An error: our user may not ask. */
static enum store_replay replay_of(struct text answer)
{
    return text_equal(answer, TEXT("OK")) ? STORE_REPLAY_WHOLE : STORE_REPLAY_DROPS;
}

static void replay_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct store *store = arg;
    struct examination *e = &store->examination;
    struct text answer;

    if (outcome != REDIS_REPLIED)
        e->has_failed = true;
    else if (reply_text(reply, &answer))
        e->facts.replay = replay_of(answer);
    part_done(store);
}

static void time_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct store *store = arg;
    struct examination *e = &store->examination;
    int64_t seconds, microseconds;

    if (store_outcome(store, outcome, reply) != STORE_OK || !reply_integer(reply_at(reply, 0), &seconds) ||
        !reply_integer(reply_at(reply, 1), &microseconds))
        e->has_failed = true;
    else
        redis_clock_told(&store->clock, &e->asked, seconds * 1000 + microseconds / 1000);
    (void)redis_clock_ahead(&store->clock, &e->facts.clock_ahead_ms);
    part_done(store);
}

/* In the metrics of a node; the parts of its partitions add up. */
static void count_losses(struct store *store, int64_t missing, int64_t lost)
{
    metric_add(METRIC_STORE_MISSING, missing - store->missing_endings);
    metric_add(METRIC_STORE_LOST, lost - store->lost_changes);
    store->missing_endings = missing;
    store->lost_changes = lost;
}

/* Of another store, and of an emptied one, it says nothing. */
static void losses_answered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct store *store = arg;
    struct store_facts *facts = &store->examination.facts;

    if (result == STORE_OK && reply_integer(reply_at(reply, 0), &facts->missing_endings) &&
        reply_integer(reply_at(reply, 1), &facts->lost_changes) &&
        reply_integer(reply_at(reply, 2), &facts->earlier_members) &&
        reply_integer(reply_at(reply, 3), &facts->listeners_without_store))
        count_losses(store, facts->missing_endings, facts->lost_changes);
    part_done(store);
}

/* Replies of a newer schema say nothing of it. */
static bool has_our_layout(struct store *store, const struct redis_reply *reply)
{
    int64_t partitions, partition, aliased, time_ahead_ms;

    if (reply_integer(reply_at(reply, 6), &aliased))
        store->has_aliases = aliased != 0;
    if (reply_integer(reply_at(reply, 7), &time_ahead_ms))
        store->examination.facts.time_ahead_ms = time_ahead_ms;
    store->examination.found_no_store = reply_integer(reply_at(reply, 4), &partitions) && partitions == 0;
    if (!reply_integer(reply_at(reply, 4), &partitions) || !reply_integer(reply_at(reply, 5), &partition) ||
        partitions == 0 || (partitions == store_partitions(store) && partition == store_partition(store)))
        return true;
    if (partitions != store_partitions(store))
        store->examination.facts.partitions_there = (unsigned)partitions;
    identity_other_layout(lease_identity(store->lease), partitions, store_partitions(store));
    return false;
}

static uint64_t read_lease_max(const struct redis_reply *reply)
{
    int64_t ms;

    return reply_integer(reply, &ms) && ms >= 0 && ms <= LEASE_MS_MAX ? (uint64_t)ms : LEASE_MS_MAX;
}

/* reply: of a schema newer than ours. */
static bool has_moved(struct store *store, const struct redis_reply *reply)
{
    struct store_facts *facts = &store->examination.facts;
    struct text place;
    struct buf out;

    if (!reply_text(reply_at(reply, 2), &place) || place.len == 0)
        return false;
    identity_moved(lease_identity(store->lease), place);
    buf_init_fixed(&out, facts->moved, sizeof facts->moved - 1);
    buf_append_printable(&out, place.len < sizeof facts->moved ? place : TEXT("another place"));
    facts->moved[out.len] = '\0';
    return true;
}

static void schema_answered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct store *store = arg;
    struct examination *e = &store->examination;
    int64_t full, copying;
    bool has_schema = (result == STORE_OK || result == STORE_REFUSED) && /* STORE_REFUSED: newer than ours */
                      reply_integer(reply_at(reply, 0), &e->facts.schema);

    e->facts.writable = has_schema;
    e->facts.full = result == STORE_OK && reply_integer(reply_at(reply, 2), &full) && full != 0;
    e->has_failed |= result == STORE_UNKNOWN;
    if (result == STORE_OK)
        lease_fence(store->lease)->lease_max_ms = read_lease_max(reply_at(reply, 3));
    if (e->facts.schema > STORE_SCHEMA) {
        if (!has_moved(store, reply))
            identity_outdated(lease_identity(store->lease),
                              reply_integer(reply_at(reply, 1), &copying) && copying != 0);
        part_done(store); /* in place of the id, which would make the store trusted */
    } else if (has_schema && !has_our_layout(store, reply)) {
        part_done(store);
    } else {
        identity_ask(lease_identity(store->lease), store_id_answered, store); /* after the claim, which may create it */
    }
    part_done(store);
}

/* It was founded after the claim, perhaps with another number of partitions. */
static bool is_founded_since(const struct examination *e, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct text id;

    return e->found_no_store && outcome == REDIS_REPLIED && reply_text_or_nil(reply_at(reply, 0), &id) && id.len > 0;
}

static void store_id_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct store *store = arg;
    struct examination *e = &store->examination;
    struct identity *identity = lease_identity(store->lease);

    e->must_repeat = is_founded_since(e, outcome, reply);
    if (e->must_repeat) {
        part_done(store);
        return;
    }
    e->has_failed |= !identity_answered(identity, outcome, reply);
    snprintf(e->facts.id, sizeof e->facts.id, "%s", identity_strange(identity) ? "" : identity_known(identity));
    part_done(store);
}

static void keys_answered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct store *store = arg;

    record_keys_answered(store, result, reply);
    store->examination.has_failed |= result == STORE_UNKNOWN;
    part_done(store);
}

/* Glances. A setting may be changed while Redis runs, and until that is noticed, changes are confirmed that a crash
 * would undo. So those that decide about it are read every second, by commands that cost Redis a few microseconds.
 * Whatever such a reply does not tell, the next examination does. */

static bool is_glanced_at(const struct store *store, const struct config_setting *setting)
{
    return !setting->for_doctor && is_asked(store, setting);
}

static void glance_done(struct store *store)
{
    struct examination *e = &store->examination;

    INVARIANT(e->glance_due > 0);
    if (--e->glance_due > 0 || e->is_running || store->is_closing || !store->changes_up)
        return;
    if (e->has_changed)
        examination_start(store);
    else
        store_glance_later(store);
}

static bool has_changed(const struct store *store, struct text name, struct text value)
{
    for (unsigned row = 0; row < CONFIG_SETTING_COUNT; row++) {
        const struct config_setting *setting = &CONFIG_SETTINGS[row];
        const void *fact = (const char *)&store->examination.facts + setting->fact;

        if (!is_glanced_at(store, setting) || !text_equal(name, text_of(setting->name)))
            continue;
        return setting->fit ? text_equal(value, text_of(setting->fit)) != *(const bool *)fact
                            : config_number(value) != *(const int64_t *)fact;
    }
    return false;
}

static void settings_glanced_at(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct store *store = arg;
    size_t count = outcome == REDIS_REPLIED && reply->type == REPLY_ARRAY ? reply->count : 0;
    struct text name, value;

    for (size_t i = 0; i + 1 < count; i += 2)
        if (reply_text(reply_at(reply, i), &name) && reply_text(reply_at(reply, i + 1), &value))
            store->examination.has_changed |= has_changed(store, name, value);
    glance_done(store);
}

static void replay_glanced_at(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct store *store = arg;
    struct text answer;

    if (outcome == REDIS_REPLIED && reply_text(reply, &answer))
        store->examination.has_changed |= replay_of(answer) != store->examination.facts.replay;
    glance_done(store);
}

static void glance(struct store *store)
{
    struct text argv[2 + CONFIG_SETTING_COUNT] = {TEXT("CONFIG"), TEXT("GET")};
    struct examination *e = &store->examination;
    size_t argc = 2;

    for (unsigned row = 0; row < CONFIG_SETTING_COUNT; row++)
        if (is_glanced_at(store, &CONFIG_SETTINGS[row]))
            argv[argc++] = text_of(CONFIG_SETTINGS[row].name);
    REQUIRE(e->glance_due == 0);
    e->glance_due = 2;
    e->has_changed = false;
    redis_link_call(store->changes, argc, argv, settings_glanced_at, store);
    call_replay(store, replay_glanced_at);
}

static bool is_a_glance_enough(const struct store *store)
{
    const struct examination *e = &store->examination;

    return uv_now(store->loop) < e->glance_until_ms && !e->is_running && !store->unfit && !store->is_full &&
           e->facts.config_readable && !identity_strange(lease_identity(store->lease));
}

static void on_probe(uv_timer_t *probe)
{
    struct store *store = probe->data;

    if (!store->changes_up || store->is_closing || store->examination.glance_due > 0)
        return;
    if (is_a_glance_enough(store))
        glance(store);
    else
        examination_start(store);
}

int64_t store_fencing_replicas(const struct store_facts *facts)
{
    return facts->replicas > 2 ? (facts->replicas + 1) / 2 : 1;
}

/* store_examine() */

static void examiners_expire(uv_timer_t *timer)
{
    struct store *store = timer->data;
    struct list *node;
    uint64_t now_ms = uv_now(store->loop);

    while ((node = list_first(&store->examination.waiting))) {
        struct examiner *examiner = LIST_ENTRY(node, struct examiner, node);

        if (examiner->deadline_ms > now_ms) {
            CHECK(uv_timer_start(timer, examiners_expire, examiner->deadline_ms - now_ms, 0) == 0);
            return;
        }
        list_remove(node);
        examiner->done(examiner->arg, STORE_UNAVAILABLE, NULL);
        free(examiner);
    }
}

void examination_give_up(struct store *store)
{
    examiners_tell(store, STORE_UNAVAILABLE, NULL);
}

void store_examine(struct store *store,
                   void (*done)(void *arg, enum store_result result, const struct store_facts *facts), void *arg)
{
    struct examination *e = &store->examination;
    struct examiner *examiner = mem_alloc(sizeof *examiner);

    *examiner =
        (struct examiner){.deadline_ms = uv_now(store->loop) + store->settings.timeout_ms, .done = done, .arg = arg};
    list_append(&e->waiting, &examiner->node);
    if (store->is_closing)
        return; /* store_close() will end it */
    if (store->changes_up)
        examination_start(store);
    if (!uv_is_active((uv_handle_t *)&e->timer))
        CHECK(uv_timer_start(&e->timer, examiners_expire, store->settings.timeout_ms, 0) == 0);
}

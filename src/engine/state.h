/* The store's internals, for its own files but not for verbs. */
#pragma once
#include "base/list.h"
#include "base/log.h"
#include "lease/lease.h"
#include "lease/store_time.h"
#include "redis/redis_clock.h"
#include "engine/lua_scripts.h"
#include "engine/copied.h"
#include "engine/facts.h"
#include "engine/settings.h"

enum {
    SCRIPT_SHA1_HEX_BYTES = 40,
    CONFIG_SETTING_COUNT = 11,
    INFO_SECTION_COUNT = 4,
    STORE_PARTS_MAX = 8,
};

struct examined_row {
    struct store *store;
    unsigned row; /* index into CONFIG_SETTINGS or INFO_SECTIONS in store_examine.c */
};

/* An examination of Redis; one at a time. */
struct examination {
    bool is_running, has_failed;
    bool found_no_store; /* when the schema was claimed */
    bool must_repeat;    /* there is one since */
    unsigned due;        /* replies still missing */
    struct redis_clock_question asked;
    struct store_facts facts;
    const char *refusal; /* why Redis refuses writes, from its error reply; NULL: none of the known reasons */
    struct examined_row config_reads[CONFIG_SETTING_COUNT], info_reads[INFO_SECTION_COUNT];
    struct list waiting; /* struct examiner: callers of store_examine() */
    uv_timer_t timer;    /* ends their wait for a connection */
    /* Between examinations: until then (uv_now()) a glance is enough, if Redis was fit. */
    uint64_t glance_until_ms;
    unsigned glance_due; /* replies still missing */
    bool has_changed;    /* what one of them says differs from the facts */
};

struct made_part {
    const struct store_part *part;
    void *made; /* NULL: closed */
};

struct store {
    uv_loop_t *loop;
    struct store_settings settings; /* with the target wiped; prefix is our copy */
    char *prefix;
    struct redis_link *reads, *scripts, *changes, *work; /* NULL: closed */
    struct redis_resolver *resolver;                     /* NULL: --redis names Redis itself */
    struct redis_sentinel *sentinel;                     /* behind the resolver, or NULL */
    void (*ready)(void *arg);
    void *arg;
    bool is_ready;                         /* as last reported to ready() */
    bool reads_up, scripts_up, changes_up; /* as last reported by the links */
    bool has_worked; /* `work` was up since `changes` last was not: afterwards, too much work makes no store unready */
    const char *unfit; /* why changes are refused; NULL: they are accepted */
    bool was_fit;      /* by some examination */
    bool is_warned;    /* that fewer than half of the replicas must acknowledge a lease */
    bool has_aliases;  /* by the last examination */
    bool is_short;     /* as in store_facts, by the last examination */
    bool is_full;      /* Redis' memory is full: only scripts with allow-oom can write */
    char trouble[512];
    char server[48]; /* as in store_facts, by the last examination */

    struct examination examination;
    uv_timer_t probe;                    /* starts the next examination */
    void (*on_probe)(uv_timer_t *probe); /* set by examination_init() */

    char script_sha1[SCRIPT_COUNT][SCRIPT_SHA1_HEX_BYTES + 1]; /* "": script_sha1() has not made it yet */
    bool texts_under_way[3][SCRIPT_COUNT]; /* whose EVAL is unanswered on `changes`, `scripts`, `work` */
    struct list refused;                   /* struct script_call: to fail in the next loop turn */
    struct list free_calls;                /* struct script_call, for reuse */
    uv_idle_t idle;                        /* fails the refused calls */
    struct log_pause error_pause, malformed_pause, altered_pause, denial_pause;

    struct redis_group links;
    struct lease *lease;
    struct made_part parts[STORE_PARTS_MAX];
    size_t part_count, parts_closed;
    void (*on_parts_closed)(struct store *store);
    const struct store_log *log;               /* NULL: none */
    unsigned logging;                          /* calls whose events are being logged */
    void (*on_log_quiet)(struct store *store); /* closing waits for them; NULL: it does not */
    enum store_keys keys;                      /* by the last examination */
    int64_t unsealed_until_ms;
    struct redis_clock clock;              /* by examinations and heartbeats */
    int64_t missing_endings, lost_changes; /* as this store's part of the metrics says */
    struct store_time time;
    int time_apart;  /* as was logged: 1: ahead of Redis' clock, -1: behind it, 0: neither */
    bool is_folding; /* chains of the dead */
    bool is_closing;
    unsigned closing; /* parts that are not closed yet */
    void (*closed)(void *arg);
    void *closed_arg;
};

/* script.c: what EVALSHA calls a script. */
struct text script_sha1(struct store *store, enum script script);

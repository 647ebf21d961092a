/* The store's inside: for its own parts, not for verbs. */
#pragma once
#include "base/list.h"
#include "base/log.h"
#include "lease/lease.h"
#include "lua_scripts.h"
#include "store/facts.h"
#include "store/settings.h"

enum {
    STORE_SCHEMA = 1,
    SCRIPT_SHA1_HEX_BYTES = 40,
    CONFIG_SETTING_COUNT = 8,
};

struct config_read {
    struct store *store;
    unsigned row; /* of the table in store_examine.c */
};

/* Looking at Redis; one at a time. */
struct examination {
    bool is_running, has_failed;
    unsigned due; /* replies */
    int64_t sent_wall_ms;
    struct store_facts facts;
    const char *refusal; /* Redis' own reason not to write, as a sentence; NULL: none of the known */
    struct config_read config_reads[CONFIG_SETTING_COUNT];
    struct list waiting; /* struct examiner: who asked by store_examine() */
    uv_timer_t timer;    /* gives up on those who wait for a connection */
};

struct store {
    uv_loop_t *loop;
    struct store_settings settings; /* target wiped, prefix our own copy */
    char *prefix;
    struct redis_link *reads, *scripts, *changes; /* NULL once closed */
    struct redis_sentinel *sentinel;              /* NULL: Redis is where the target says */
    void (*ready)(void *arg);
    void *arg;
    bool is_ready;                         /* as last told */
    bool reads_up, scripts_up, changes_up; /* the links, as they told */
    const char *unfit;                     /* why changes are refused; NULL: they are not */
    bool is_full;                          /* Redis itself refuses those that make something */
    char trouble[256];

    struct examination examination;
    uv_timer_t probe;                    /* the next examination */
    void (*on_probe)(uv_timer_t *probe); /* begins it */

    char script_sha1[SCRIPT_COUNT][SCRIPT_SHA1_HEX_BYTES];
    struct list refused;    /* struct script_call: to be told from the next turn on */
    struct list free_calls; /* struct script_call */
    uv_idle_t idle;         /* tells the refused */
    struct log_pause error_pause, malformed_pause, altered_pause;

    struct redis_group links;
    struct lease *lease;
    struct key_finder *finder;
    struct key_discards *discards;
    enum store_keys keys; /* as last found */
    int64_t unsealed_until_ms;
    int64_t clock_ahead_ms; /* Redis' of ours, as last found */
    bool is_closing;
    unsigned closing; /* parts that have not ended yet */
    void (*closed)(void *arg);
    void *closed_arg;
};

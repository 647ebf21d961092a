/* What 'status' has found, and the judgement of it. Separate from collecting, so that tests need no Redis. */
#pragma once
#include "base/loss.h"
#include "config/agreement.h"
#include "core/bucket.h"
#include "auth/canary_summary.h"
#include "engine/fitness.h"
#include "engine/node_store.h"

enum { STATUS_PROBLEMS_MAX = 64, STATUS_PROBLEM_BYTES = 512, STATUS_TEXT_BYTES = 256, STATUS_REASONS_MAX = 8 };
enum { STATUS_LISTENERS_MAX = 2, STATUS_SPAN_BYTES = 32 };

/* A node is silent after this long: it reports every ten seconds. */
enum { STATUS_SILENT_MS = 35000 };

/* What a node says of a setting that all must agree on. */
struct status_agreement {
    char name[AGREEMENT_NAME_BYTES];
    int64_t digest;
};

/* What a node says of a listener's certificates. */
struct status_certificate {
    char listener[16], files[STATUS_TEXT_BYTES];
    int64_t not_after_s; /* when the first of them expires */
    bool has_rejected;   /* files have changed, and cannot be used */
};

struct status_node {
    char name[NODE_NAME_MAX_BYTES], host[STATUS_TEXT_BYTES], address[STATUS_TEXT_BYTES], version[STATUS_TEXT_BYTES];
    char memberships[PARTITIONS_MAX * (MEMBER_NAME_CHARS + 1)]; /* of the partitions, separated by spaces */
    char master_key[KEYRING_SHORT_NAME_CHARS + 1];
    int64_t pid, age_ms, started_ms, lease_ms, lease_since_ms, revocations;
    int64_t barrier_p99_us; /* 0: no revocation yet; -1: above 10 s */
    int64_t canary_ms;      /* between runs of the canary; 0: it takes no part */
    bool is_readable;       /* the report is one of ours; else only name and age are set */
    bool is_draining, has_lease, has_revocation_log;
    bool has_lost[LOSS_COUNT];
    struct status_agreement agreements[AGREEMENTS_MAX];
    size_t agreement_count;
    struct status_certificate certificates[STATUS_LISTENERS_MAX];
    size_t certificate_count;
    bool is_clock_known;    /* Redis has told this node its clock */
    int64_t clock_ahead_ms; /* Redis' clock before this node's */
    char reasons[STATUS_REASONS_MAX][STATUS_TEXT_BYTES];
    size_t reason_count;
};

struct status {
    const struct settings *settings;
    int64_t now_ms;    /* wall clock */
    char target[2048]; /* the address of Redis, without the password */
    bool is_reachable;
    const char *trouble;      /* why Redis is not reachable, or decides nothing; empty: fine */
    struct store_facts facts; /* of the first partition that is unfit, or of the first */
    unsigned partitions, partitions_well;
    bool is_listed; /* the nodes are known */
    int64_t lease_max_ms;
    struct status_node *nodes; /* without those that have stopped */
    size_t node_count;
    size_t unnamed;  /* memberships, of any partition, that belong to no reporting node */
    bool has_canary; /* what it has found is known */
    struct canary_summary canary;

    char problems[STATUS_PROBLEMS_MAX][STATUS_PROBLEM_BYTES]; /* status_judge() fills these */
    size_t problem_count;
};

/* Reads a report. Whatever is wrong with it, name and age are set. */
void status_read_node(const struct node_row *row, struct status_node *ret_node);
/* Of the report. */
void status_read_certificates(const struct json *report, struct status_node *node);
void status_read_agreements(const struct json *report, struct status_node *node);
/* Appends the settings in which this node differs from most others, separated by commas. False: none. */
bool status_print_differences(const struct status *status, const struct status_node *node, struct buf *out);
/* The interval of the nodes that report; 0: none of them takes part. */
int64_t status_canary_interval_ms(const struct status *status);
/* Adds a problem. */
PRINTF_LIKE(2, 3) void status_add(struct status *status, const char *format, ...);
/* Of a node whose report is new. */
void status_judge_certificates(struct status *status, const struct status_node *node);
void status_print_certificates(const struct status_node *node, struct buf *out);
/* null: unknown */
void status_put_certificates(const struct status_node *node, bool is_known, struct json_writer *w);
/* "3 d", "5 h", "12 min" or "7 s" */
void status_print_span(int64_t ms, char ret_text[STATUS_SPAN_BYTES]);
/* Text of a member; empty if there is none. */
void status_copy_text(const struct json *report, const char *name, char *ret_text, size_t size);
int64_t status_copy_integer(const struct json *report, const char *name);
bool status_copy_flag(const struct json *report, const char *name);
/* The rule is broken only as far as nobody has seen a setting of Redis: this user may not read it. */
bool status_is_unknown(const struct status *status, const struct fitness_rule *rule);
/* Finds everything that is degraded. */
void status_judge(struct status *status);
void status_print(const struct status *status, struct buf *out);
void status_print_json(const struct status *status, struct buf *out);

/* The checks of doctor. Separate from collecting the evidence, so that tests need no Redis. */
#pragma once
#include "base/loss.h"
#include "config/settings.h"
#include "key_census_internal.h"
#include "trail/audit_keeper.h"
#include "engine/store.h"

/* From best to worst. DOCTOR_UNPROVEN: the check could not tell; such a report is not fit. */
enum doctor_status { DOCTOR_OK, DOCTOR_WARN, DOCTOR_UNPROVEN, DOCTOR_FAIL };

enum {
    DOCTOR_DAY_S = 24 * 60 * 60,
    DOCTOR_DETAIL_BYTES = 512,
    DOCTOR_MISTAKES_MAX = 24,
    DOCTOR_CHECKS_MAX = 40 + KEYRING_MAX_GENERATIONS + LOSS_COUNT + DOCTOR_MISTAKES_MAX + UNKNOWN_SETTINGS_MAX
};

struct doctor_check {
    const char *name;
    enum doctor_status status;
    char detail[DOCTOR_DETAIL_BYTES];
    const char *remedy; /* one or two sentences; NULL if the status is DOCTOR_OK */
};

struct doctor_report {
    struct doctor_check checks[DOCTOR_CHECKS_MAX];
    size_t count;
};

/* The certificates of one listener. */
struct doctor_tls {
    bool is_on;
    char trouble[DOCTOR_DETAIL_BYTES]; /* empty: they can be used */
    int64_t left_s;                    /* until the first one expires */
};

struct doctor_evidence {
    const struct settings *settings;
    struct text mistakes; /* in the settings: sentences, each on a line of its own */
    bool is_reachable;
    const char *trouble;      /* why Redis is not reachable */
    struct store_facts facts; /* of the first partition that is unfit, or of the first */
    unsigned partitions, partitions_well;
    /* Addresses of the name in redis://, without this machine's own. More than one of a kind means several servers. */
    unsigned addresses_v4, addresses_v6;
    bool has_tls, is_elsewhere;      /* the connections to Redis: over TLS; to another machine */
    int64_t certificate_not_after_s; /* of --redis-cert, in seconds since 1970; 0: none */
    int64_t now_s;
    const char *key_trouble; /* NULL: the master key files are fine */
    bool is_counted;         /* the census was taken */
    struct key_census census;
    bool has_backlog; /* it could be read */
    struct audit_backlog backlog;
    unsigned nodes, losses[LOSS_COUNT]; /* that report; that report this loss */
    const char *origin_trouble;
    struct doctor_tls tls, internal_tls;
    uint64_t file_limit; /* the hard limit: the node raises the soft limit to it */
};

/* Adds a check. The remedy is left out if it is ok. */
PRINTF_LIKE(5, 6)
void doctor_add(struct doctor_report *report, const char *name, enum doctor_status status, const char *remedy,
                const char *format, ...);
/* Prints the report as the command line asks, and returns the exit code. */
struct command_line;
MUST_CHECK int doctor_tell(const struct command_line *line, const struct doctor_report *report);
/* doctor --gateway */
extern const struct option_table GATEWAY_TABLE;
MUST_CHECK int doctor_gateway_run(const struct command_line *line);
/* Runs the checks of Redis, a part of doctor_evaluate(). */
void doctor_check_redis(struct doctor_report *report, const struct doctor_evidence *evidence);
/* Runs every check on the evidence. */
void doctor_evaluate(const struct doctor_evidence *evidence, struct doctor_report *ret_report);
/* For people: a line per check, the remedy below it, at most 100 columns, and the verdict. has_colour: with colours and
 * symbols, for terminals. */
void doctor_print(const struct doctor_report *report, bool has_colour, struct buf *out);
/* Standard output is a terminal, and NO_COLOR is not set. */
bool doctor_wants_colour(void);
/* True if no check has failed, and each could tell. */
bool doctor_is_fit(const struct doctor_report *report);

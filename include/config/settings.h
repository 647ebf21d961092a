/* Every setting of a node and of the command line tool: one struct, and the tables that fill it and print --help and
 * the man page. There is a table per group, so that a command takes only the settings it uses. */
#pragma once
#include "base/log.h"
#include "base/options.h"
#include "http/settings.h"

#define SETTINGS_LISTEN "127.0.0.1:8080"          /* of the public listener */
#define SETTINGS_INTERNAL_LISTEN "127.0.0.1:8081" /* the default address of a node's internal listener */

enum redis_durability { REDIS_DURABILITY_OBSERVED, REDIS_DURABILITY_ASSERTED };
enum grant_policy { GRANT_SUBSET, GRANT_ANY };
enum check_status { CHECK_STATUS_EXACT, CHECK_STATUS_STRICT401 };

/* A variable that is named like a setting and is none, so it has no effect. */
struct unknown_setting {
    char name[64];     /* "CHATELAINE_LEASE_MSS", cut if it is longer; never its value */
    char meant[64];    /* "CHATELAINE_LEASE_MS"; empty: no name is near */
    const char *where; /* "/etc/chatelaine/chatelaine.conf:12"; NULL: the environment */
};
enum { UNKNOWN_SETTINGS_MAX = 16 };
struct unknown_settings {
    struct unknown_setting of[UNKNOWN_SETTINGS_MAX];
    size_t count; /* further ones are left out */
};

struct settings {
    const char *settings_files;             /* paths, separated by commas; already read */
    const struct unknown_settings *unknown; /* not an option; NULL: none was looked for */
    /* store */
    const char *redis;
    const char *redis_file;
    const char *redis_ca;
    const char *redis_cert;
    const char *redis_key;
    const char *sentinel_auth_file;
    int redis_durability; /* enum redis_durability */
    const char *prefix;
    int64_t partitions; /* 0: as many as --redis needs */
    int64_t redis_timeout_ms;
    int64_t min_replicas;
    int64_t audit_max;
    int64_t keys_max;
    int64_t device_keys_max;
    int64_t keys_per_day;
    int64_t revoked_key_days;
    int64_t people_max;
    int64_t changes_per_minute;
    bool unsafe_redis;
    /* keys */
    const char *master_key_file;
    const char *retired_master_key_file;
    /* log */
    int log_level;  /* enum log_level */
    int log_format; /* enum log_format */
    /* node */
    const char *listen;
    const char *internal_listen;
    const char *internal_hosts;
    const char *check_socket; /* NULL: none */
    const char *tls_cert, *tls_key;
    const char *internal_tls_cert, *internal_tls_key;
    const char *internal_client_ca;
    const char *public_origin;
    bool redirects_localhost; /* to the public origin; not an option: `dev` sets it */
    const char *ready_file;
    const char *policy_file;
    const char *revocation_log;
    const char *audit_log;
    int grant_policy; /* enum grant_policy */
    const char *device_clients;
    int check_status; /* enum check_status */
    const char *trusted_proxies;
    bool proxy_protocol;
    bool internal_proxy_protocol;
    bool reuse_port;
    int64_t session_idle_ms;
    int64_t session_absolute_ms;
    int64_t step_up_ms;
    int64_t lease_ms;
    int64_t cache_entries;
    int64_t cache_bytes;
    const char *table; /* NULL: none */
    const char *table_deployment;
    int64_t table_keys;
    int64_t usage_flush_ms;
    int64_t canary_interval_ms; /* 0: no canary */
    int64_t password_parallel;
    int64_t password_queue;
    int64_t drain_ms;
    int64_t access_log_sample;
    int64_t watchers_max;
    const char *watch_names;
    int64_t reads_per_second;
    int64_t work_per_account;
    struct http_limits limits; /* connections_max: per listener */
};

/* Rows whose offsets count from the start of a struct settings. */
extern const struct option_table SETTINGS_STORE;       /* which Redis, and how */
extern const struct option_table SETTINGS_KEYS;        /* master keys */
extern const struct option_table SETTINGS_LOG;         /* what is logged */
extern const struct option_table SETTINGS_NODE;        /* addresses, sessions, passwords */
extern const struct option_table SETTINGS_TLS;         /* certificates of both listeners */
extern const struct option_table SETTINGS_ORIGIN;      /* only the public origin */
extern const struct option_table SETTINGS_REVOCATIONS; /* only the revocation log */
extern const struct option_table SETTINGS_AUDIT;       /* only the audit log */
extern const struct option_table SETTINGS_LIMITS;      /* limits and timeouts of HTTP */

extern const struct option_row *const SETTINGS_FILES_ROW; /* --settings, a row of SETTINGS_STORE */

/* "CHATELAINE_LEASE_MSS is no setting and has no effect; did you mean CHATELAINE_LEASE_MS?" */
void unknown_setting_print(const struct unknown_setting *unknown, struct buf *out);
/* Checks that a public origin has the form that browsers send in Origin: scheme://host[:port], http or https, lower
 * case, no path, no default port. If not, false, with one sentence in ret_why. */
MUST_CHECK bool settings_validate_origin(const char *origin, struct buf *ret_why);
bool settings_origin_is_https(const char *origin);

/* The number of open files that a node with these settings may need. */
uint64_t settings_files_needed(const struct settings *settings);
/* The connections per listener that fit this many open files: at least 1, at most connections_max. */
int64_t settings_connections_within(const struct settings *settings, uint64_t files);

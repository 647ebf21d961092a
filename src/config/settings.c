#include "config/settings.h"

#include "core/limits.h"

#include <stddef.h>

#define AT(field) offsetof(struct settings, field)
#define TABLE(rows)                          \
    {                                        \
        rows, sizeof(rows) / sizeof(rows)[0] \
    }

static const struct option_row STORE_ROWS[] = {
    {.name = "redis",
     .type = OPTION_TEXT,
     .offset = AT(redis),
     .standard = "redis://127.0.0.1:6379",
     .value_name = "URL",
     .help = "Where Redis is: redis://[user:password@]host[:port][/db], unix:/path, or "
             "redis-sentinel://[user:password@]host:port,host:port/master-name[/db], where Sentinels tell which Redis "
             "is the master; that needs --min-replicas. A password belongs into "
             "--redis-file or the environment, for arguments are visible to all users."},
    {.name = "redis-file",
     .type = OPTION_TEXT,
     .offset = AT(redis_file),
     .value_name = "PATH",
     .help = "A file that holds the address of Redis; it wins over --redis."},
    {.name = "prefix",
     .type = OPTION_TEXT,
     .offset = AT(prefix),
     .standard = "chatelaine:",
     .max = REDIS_PREFIX_MAX_BYTES,
     .value_name = "TEXT",
     .help = "What all names in Redis begin with, at most 64 bytes."},
    {.name = "redis-timeout-ms",
     .type = OPTION_INTEGER,
     .offset = AT(redis_timeout_ms),
     .standard = "1000",
     .min = 10,
     .max = 60000,
     .value_name = "MS",
     .help = "How long a command to Redis may take before it counts as lost."},
    {.name = "min-replicas",
     .type = OPTION_INTEGER,
     .offset = AT(min_replicas),
     .standard = "0",
     .min = 0,
     .max = 16,
     .value_name = "N",
     .help = "A change is answered once as many replicas have it."},
    {.name = "audit-max",
     .type = OPTION_INTEGER,
     .offset = AT(audit_max),
     .standard = "100000",
     .min = 100,
     .max = 100000000,
     .value_name = "N",
     .help = "Audit events that are kept for each account."},
    {.name = "unsafe-redis",
     .type = OPTION_FLAG,
     .offset = AT(unsafe_redis),
     .help = "Work with a Redis that may lose acknowledged changes. A lost revocation brings a key back to life: "
             "for experiments only."},
};

static const struct option_row KEY_ROWS[] = {
    {.name = "master-key-file",
     .type = OPTION_TEXT,
     .offset = AT(master_key_file),
     .value_name = "PATH",
     .help = "The master key: 32 bytes as hex or base64, in a file that only the node's user may read. Make one with "
             "'chatelaine master-key'."},
    {.name = "retired-master-key-file",
     .type = OPTION_TEXT,
     .offset = AT(retired_master_key_file),
     .value_name = "PATH",
     .help = "The master key before the current one: it verifies what it made, and makes nothing new."},
};

static const struct option_row LOG_ROWS[] = {
    {.name = "log-level",
     .type = OPTION_CHOICE,
     .offset = AT(log_level),
     .standard = "info",
     .choices = "debug|info|warn|error",
     .help = "The least severe lines that are logged."},
    {.name = "log-format",
     .type = OPTION_CHOICE,
     .offset = AT(log_format),
     .standard = "logfmt",
     .choices = "logfmt|json",
     .help = "The form of log lines on standard error."},
};

static const struct option_row ORIGIN_ROWS[] = {
    {.name = "public-origin",
     .type = OPTION_TEXT,
     .offset = AT(public_origin),
     .value_name = "ORIGIN",
     .help = "Where browsers find the node: https://console.example.org. Requests from another origin are refused, "
             "and https turns on Strict-Transport-Security."},
};

static const struct option_row REVOCATION_ROWS[] = {
    {.name = "revocation-log",
     .type = OPTION_TEXT,
     .offset = AT(revocation_log),
     .value_name = "PATH",
     .help = "A file to which each revocation is appended before it is answered, one line a key: what 'chatelaine key "
             "revoke --from-log' replays when a backup of Redis was restored. SIGHUP opens it again."},
};

static const struct option_row NODE_ROWS[] = {
    {.name = "listen",
     .type = OPTION_TEXT,
     .offset = AT(listen),
     .standard = "127.0.0.1:8080",
     .value_name = "ADDRESS",
     .help = "The public listener: host:port, [v6]:port or unix:/path; port 0 takes any that is free."},
    {.name = "internal-listen",
     .type = OPTION_TEXT,
     .offset = AT(internal_listen),
     .standard = SETTINGS_INTERNAL_LISTEN,
     .value_name = "ADDRESS",
     .help = "The listener for gateways, probes and metrics. Whoever reaches it can ask whether a key is good: keep it "
             "from the public."},
    {.name = "reuse-port",
     .type = OPTION_FLAG,
     .offset = AT(reuse_port),
     .help = "Let several nodes of this machine share one address (SO_REUSEPORT)."},
    {.name = "ready-file",
     .type = OPTION_TEXT,
     .offset = AT(ready_file),
     .value_name = "PATH",
     .help = "Written (JSON: pid, addresses) once the node serves, removed when it stops."},
    {.name = "policy-file",
     .type = OPTION_TEXT,
     .offset = AT(policy_file),
     .value_name = "PATH",
     .help = "Which scope a route of other backends needs (JSON), instead of the built-in table. SIGHUP reads it "
             "again."},
    {.name = "grant-policy",
     .type = OPTION_CHOICE,
     .offset = AT(grant_policy),
     .standard = "subset",
     .choices = "subset|any",
     .help = "Whether a key may create only keys with a subset of its own scopes, or any."},
    {.name = "trusted-proxies",
     .type = OPTION_TEXT,
     .offset = AT(trusted_proxies),
     .value_name = "CIDR,…",
     .help = "Networks of the proxies before this node, as in 10.0.0.0/8,fd00::/8: X-Forwarded-For counts if it comes "
             "from there. The client is the last address in it that lies in none of them."},
    {.name = "check-status",
     .type = OPTION_CHOICE,
     .offset = AT(check_status),
     .standard = "exact",
     .choices = "exact|strict401",
     .help = "How checks refuse: as the public listener does, or, for nginx' auth_request, with 401 and 403 alone. The "
             "true code is in X-Auth-Error."},
    {.name = "device-clients",
     .type = OPTION_TEXT,
     .offset = AT(device_clients),
     .standard = "desktop-agent",
     .value_name = "IDS",
     .help = "The client ids with which devices may ask to be enrolled (OAuth 2.0 device grant), separated by commas."},
    {.name = "lease-ms",
     .type = OPTION_INTEGER,
     .offset = AT(lease_ms),
     .standard = "1000",
     .min = 0,
     .max = LEASE_MS_MAX,
     .value_name = "MS",
     .help =
         "How long a node that hears nothing from Redis may answer checks from memory. A revocation waits for a node "
         "that does not answer 1.25 times as long. 0: nothing is remembered, every check reads Redis."},
    {.name = "cache-entries",
     .type = OPTION_INTEGER,
     .offset = AT(cache_entries),
     .standard = "1000000",
     .min = 64,
     .max = 100000000,
     .value_name = "N",
     .help = "Keys that are remembered at most."},
    {.name = "cache-bytes",
     .type = OPTION_INTEGER,
     .offset = AT(cache_bytes),
     .standard = "100663296",
     .min = 65536,
     .max = 17179869184,
     .value_name = "BYTES",
     .help = "Memory for them at most, 96 bytes each; what is not used costs nothing."},
    {.name = "session-idle-ms",
     .type = OPTION_INTEGER,
     .offset = AT(session_idle_ms),
     .standard = "1800000",
     .min = 1000,
     .max = 604800000,
     .value_name = "MS",
     .help = "A console session ends when it was not used for so long."},
    {.name = "session-absolute-ms",
     .type = OPTION_INTEGER,
     .offset = AT(session_absolute_ms),
     .standard = "43200000",
     .min = 1000,
     .max = 2592000000,
     .value_name = "MS",
     .help = "A console session ends so long after it began, used or not."},
    {.name = "step-up-ms",
     .type = OPTION_INTEGER,
     .offset = AT(step_up_ms),
     .standard = "300000",
     .min = 1000,
     .max = 3600000,
     .value_name = "MS",
     .help = "How long a fresh password and code count for what needs them."},
    {.name = "usage-flush-ms",
     .type = OPTION_INTEGER,
     .offset = AT(usage_flush_ms),
     .standard = "1000",
     .min = 10,
     .max = 60000,
     .value_name = "MS",
     .help = "How often the uses of keys are written to Redis; a crash loses one interval at most."},
    {.name = "password-parallel",
     .type = OPTION_INTEGER,
     .offset = AT(password_parallel),
     .standard = "2",
     .min = 1,
     .max = 64,
     .value_name = "N",
     .help = "Passwords that are hashed at the same time; each takes 128 MiB."},
    {.name = "password-queue",
     .type = OPTION_INTEGER,
     .offset = AT(password_queue),
     .standard = "16",
     .min = 0,
     .max = 10000,
     .value_name = "N",
     .help = "Passwords that may wait to be hashed; beyond, a login is answered 503."},
    {.name = "drain-ms",
     .type = OPTION_INTEGER,
     .offset = AT(drain_ms),
     .standard = "30000",
     .min = 0,
     .max = 3600000,
     .value_name = "MS",
     .help = "How long requests may still take after SIGTERM."},
};

static const struct option_row LIMIT_ROWS[] = {
    {.name = "head-max-bytes",
     .type = OPTION_INTEGER,
     .offset = AT(head_max_bytes),
     .standard = "16384",
     .min = 1024,
     .max = 65536,
     .value_name = "BYTES",
     .help = "Request line and headers together; beyond: 431."},
    {.name = "fields-max",
     .type = OPTION_INTEGER,
     .offset = AT(fields_max),
     .standard = "100",
     .min = 8,
     .max = 1000,
     .value_name = "N",
     .help = "Header fields of a request; beyond: 431."},
    {.name = "target-max-bytes",
     .type = OPTION_INTEGER,
     .offset = AT(target_max_bytes),
     .standard = "8000",
     .min = 256,
     .max = 65536,
     .value_name = "BYTES",
     .help = "Path and query of a request; beyond: 414."},
    {.name = "body-max-bytes",
     .type = OPTION_INTEGER,
     .offset = AT(body_max_bytes),
     .standard = "65536",
     .min = 1024,
     .max = 1048576,
     .value_name = "BYTES",
     .help = "The body of a request; beyond: 413."},
    {.name = "head-timeout-ms",
     .type = OPTION_INTEGER,
     .offset = AT(head_timeout_ms),
     .standard = "10000",
     .min = 10,
     .max = 600000,
     .value_name = "MS",
     .help = "From a request's first byte to the end of its head; beyond: 408."},
    {.name = "body-timeout-ms",
     .type = OPTION_INTEGER,
     .offset = AT(body_timeout_ms),
     .standard = "10000",
     .min = 10,
     .max = 600000,
     .value_name = "MS",
     .help = "Without a byte of the body; beyond: 408."},
    {.name = "idle-timeout-ms",
     .type = OPTION_INTEGER,
     .offset = AT(idle_timeout_ms),
     .standard = "75000",
     .min = 10,
     .max = 3600000,
     .value_name = "MS",
     .help = "Between two requests of a connection; beyond, it is closed."},
    {.name = "write-timeout-ms",
     .type = OPTION_INTEGER,
     .offset = AT(write_timeout_ms),
     .standard = "30000",
     .min = 10,
     .max = 600000,
     .value_name = "MS",
     .help = "Without a byte of the answer taken; beyond, the connection is closed."},
    {.name = "connections-max",
     .type = OPTION_INTEGER,
     .offset = AT(connections_max),
     .standard = "50000",
     .min = 1,
     .max = 1000000,
     .value_name = "N",
     .help = "Connections of each listener; beyond, a new one is answered 503 and closed."},
};

const struct option_table SETTINGS_STORE = TABLE(STORE_ROWS);
const struct option_table SETTINGS_KEYS = TABLE(KEY_ROWS);
const struct option_table SETTINGS_LOG = TABLE(LOG_ROWS);
const struct option_table SETTINGS_NODE = TABLE(NODE_ROWS);
const struct option_table SETTINGS_ORIGIN = TABLE(ORIGIN_ROWS);
const struct option_table SETTINGS_REVOCATIONS = TABLE(REVOCATION_ROWS);
const struct option_table SETTINGS_LIMITS = TABLE(LIMIT_ROWS);

/* Files beside connections: listeners, links to Redis and Sentinels, the log, the loop's own, and connections beyond
 * the limit that are told so. */
enum { LISTENERS = 2, FILES_BESIDE_CONNECTIONS = 256 };

uint64_t settings_files_needed(const struct settings *settings)
{
    return (uint64_t)settings->connections_max * LISTENERS + FILES_BESIDE_CONNECTIONS;
}

int64_t settings_connections_within(const struct settings *settings, uint64_t files)
{
    if (files >= settings_files_needed(settings))
        return settings->connections_max;
    return files < FILES_BESIDE_CONNECTIONS + LISTENERS ? 1 : (int64_t)(files - FILES_BESIDE_CONNECTIONS) / LISTENERS;
}

#include "config/settings.h"

#include "core/bucket.h"
#include "core/limits.h"

#include <stddef.h>

#define AT(field) offsetof(struct settings, field)
#define TABLE(rows)                          \
    {                                        \
        rows, sizeof(rows) / sizeof(rows)[0] \
    }

static const struct option_row STORE_ROWS[] = {
    {.name = "settings",
     A_TEXT(AT(settings_files), "PATH,…"),
     .help = "Read settings from these files, the last one wins: lines CHATELAINE_NAME=value. They win over the "
             "environment, and options over them. A line that is not clear is refused."},
    {.name = "redis",
     A_TEXT(AT(redis), "URL"),
     .default_text = "redis://127.0.0.1:6379",
     .help = "Where Redis is: redis://[user:password@]host[:port][/db], unix:/path, or "
             "redis-sentinel://[user:password@]host:port,host:port/master-name[/db] or "
             "redis-cluster://[user:password@]host:port,host:port, which need --min-replicas. rediss://, "
             "rediss-sentinel:// and rediss-cluster:// use TLS. Put a password into --redis-file or "
             "CHATELAINE_REDIS: every user of the machine can see arguments."},
    {.name = "redis-file",
     A_TEXT(AT(redis_file), "PATH"),
     .instead_of = "redis",
     .help =
         "Read the address of Redis from this file, instead of --redis. A node takes up a new user or password while "
         "it serves; for another address, restart it."},
    {.name = "redis-ca",
     A_TEXT(AT(redis_ca), "PATH"),
     .help = "With rediss://, accept only servers whose certificate comes from the CAs in this file (PEM), instead of "
             "those that this system trusts. A node takes up a renewed file while it serves."},
    {.name = "redis-cert",
     A_TEXT(AT(redis_cert), "PATH"),
     .help = "With rediss://, identify to Redis and Sentinels by this certificate (PEM). Needs --redis-key."},
    {.name = "redis-key",
     A_TEXT(AT(redis_key), "PATH"),
     .help = "The private key of --redis-cert, in PEM without a passphrase. Only the node's user may have access to "
             "it."},
    {.name = "sentinel-auth-file",
     A_TEXT(AT(sentinel_auth_file), "PATH"),
     .help =
         "Read from this file what the Sentinels of --redis ask for: user:password, or :password. User and password "
         "in --redis are only for Redis. A node takes up a change while it serves."},
    {.name = "redis-durability",
     A_CHOICE(AT(redis_durability), "observed", "observed|asserted"),
     .is_agreed = true,
     .help =
         "asserted is for managed services that forbid CONFIG GET: you assert that every write Redis acknowledges "
         "survives, in a takeover too. If it does not, a revoked key is valid again. With observed, such a Redis is "
         "refused."},
    {.name = "prefix",
     A_TEXT(AT(prefix), "TEXT"),
     .default_text = "chatelaine:",
     .max = PREFIX_MAX_BYTES,
     .help = "Begin all names in Redis with this text, at most 64 bytes."},
    {.name = "partitions",
     AN_INTEGER(AT(partitions), "0", 0, PARTITIONS_MAX),
     .help = "Spread accounts over this many groups of names, a power of two, each of which one primary of a cluster "
             "holds. 0 means 16 with redis-cluster://, else 1. Fixed once the store has its first account."},
    {.name = "redis-timeout-ms",
     A_TIME(AT(redis_timeout_ms), "1s", 10, 60000),
     .is_agreed = true,
     .help = "Treat a command to Redis as lost after this long. Its outcome is then unknown, and the request is "
             "answered 503."},
    {.name = "min-replicas",
     AN_INTEGER(AT(min_replicas), "0", 0, 16),
     .is_agreed = true,
     .help = "Confirm a change only once this many replicas have acknowledged it, and grant leases likewise. At least "
             "1 with Sentinel. Use the same value on all nodes."},
    {.name = "audit-max",
     AN_INTEGER(AT(audit_max), "100000", 100, AUDIT_EVENTS_MOST),
     .is_agreed = true,
     .help = "Keep this many audit events per account for each of: people, live keys, test keys, refusals. Nodes drop "
             "older ones; commands drop none."},
    {.name = "keys-max",
     AN_INTEGER(AT(keys_max), "10000", 1, 10000000),
     .is_agreed = true,
     .help = "Allow an account this many active API keys. Creating more is refused with 409 key_limit_reached."},
    {.name = "device-keys-max",
     AN_INTEGER(AT(device_keys_max), "10000", 1, 10000000),
     .is_agreed = true,
     .help = "Allow an account this many active device keys. Approving more is refused with 409 key_limit_reached."},
    {.name = "keys-per-day",
     AN_INTEGER(AT(keys_per_day), "10000", 1, 10000000),
     .is_agreed = true,
     .help =
         "Allow an account to make this many keys within 24 hours, of each kind; live ones are counted without test "
         "keys. Each stays in Redis after it was revoked, about 1 kB, for --revoked-key-days. More are refused with "
         "409 "
         "key_limit_reached."},
    {.name = "revoked-key-days",
     AN_INTEGER(AT(revoked_key_days), "400", 30, 36500),
     .is_agreed = true,
     .help = "List a revoked key, and keep its receipt, for this many days. Then only its digest stays, in 120 bytes: "
             "requests with it are 401 api_key_revoked for ever. Use the same value on all nodes."},
    {.name = "people-max",
     AN_INTEGER(AT(people_max), "100000", 1, 10000000),
     .is_agreed = true,
     .help = "Allow an account this many people and invitations. Inviting more is refused with 409 "
             "user_limit_reached."},
    {.name = "changes-per-minute",
     AN_INTEGER(AT(changes_per_minute), "600", 1, 10000000),
     .is_agreed = true,
     .help = "Let one user or key create keys, approve devices and invite people this many times a minute. All users "
             "of an account "
             "together may do so ten times as often; so may all its keys together, counted apart for creating live and "
             "test keys. Changing a scheduled revocation counts, too. More is refused with 429. Revoking is never "
             "limited."},
    {.name = "unsafe-redis",
     A_FLAG(AT(unsafe_redis)),
     .is_agreed = true,
     .help = "Serve even if Redis may lose acknowledged changes. A lost revocation brings its key back to life: for "
             "experiments only."},
};

static const struct option_row KEY_ROWS[] = {
    {.name = "master-key-file",
     A_TEXT(AT(master_key_file), "PATH"),
     .help = "Read the master key from this file: 32 bytes as hex or base64. Only the node's user may have access to "
             "it. Make one with 'chatelaine master-key --write PATH'."},
    {.name = "retired-master-key-file",
     A_TEXT(AT(retired_master_key_file), "PATH"),
     .help = "Read up to 7 other master keys from this file, one per line. They only verify what was made with them: "
             "previous master keys after a rotation, or the next one before it."},
};

static const struct option_row LOG_ROWS[] = {
    {.name = "log-level",
     A_CHOICE(AT(log_level), "info", "debug|info|warn|error"),
     .help = "Write log lines of this level and above."},
    {.name = "log-format",
     A_CHOICE(AT(log_format), "logfmt", "logfmt|json"),
     .help = "Write log lines to standard error in this format."},
};

static const struct option_row ORIGIN_ROWS[] = {
    {.name = "public-origin",
     A_TEXT(AT(public_origin), "ORIGIN"),
     .is_agreed = true,
     .help = "The origin at which browsers see the console, such as https://console.example.org. Required. Browser "
             "sign-ins and changes from another origin are refused; requests with an API key are not affected. https "
             "turns on Strict-Transport-Security."},
};

static const struct option_row REVOCATION_ROWS[] = {
    {.name = "revocation-log",
     A_TEXT(AT(revocation_log), "PATH"),
     .help =
         "Append each revocation to this file before it is confirmed, one line per key. After restoring a backup of "
         "Redis, replay it with 'chatelaine key revoke --from-log'. SIGHUP reopens it."},
};

static const struct option_row AUDIT_ROWS[] = {
    {.name = "audit-log",
     A_TEXT(AT(audit_log), "PATH"),
     .help = "Append each audit event to this file, and sync it, before the change is confirmed: one JSON object per "
             "line, in a chain that 'chatelaine audit verify' checks. Each node needs a file of its own. SIGHUP "
             "reopens it."},
};

static const struct option_row NODE_ROWS[] = {
    {.name = "listen",
     A_TEXT(AT(listen), "ADDRESS"),
     .default_text = SETTINGS_LISTEN,
     .help =
         "Serve the public routes here: host:port, [v6]:port or unix:/path. [::]:8080 is every address, of IPv4 too, "
         "and works where IPv6 is off. Port 0 picks a free one."},
    {.name = "internal-listen",
     A_TEXT(AT(internal_listen), "ADDRESS"),
     .default_text = SETTINGS_INTERNAL_LISTEN,
     .help = "Answer gateways' checks, probes and metrics here. There is no password: anyone who reaches it can test "
             "keys, so keep it private."},
    {.name = "internal-hosts",
     A_TEXT(AT(internal_hosts), "NAMES"),
     .default_text = "",
     .help = "Names, separated by commas, by which clients ask --internal-listen for metrics or watch revocations. "
             "Without TLS, other names than local ones (of one part, or of .internal, .local or .svc) are refused: a "
             "page in a browser could have had its own name lead here."},
    {.name = "check-socket",
     A_TEXT(AT(check_socket), "PATH"),
     .help =
         "Answer on this Unix socket as well as on --internal-listen, without TLS: for a gateway on this machine. Its "
         "file has mode 0660, so its owner and its group may connect, and so may test keys."},
    {.name = "reuse-port",
     A_FLAG(AT(reuse_port)),
     .help = "Let several nodes on this machine share one address (SO_REUSEPORT)."},
    {.name = "ready-file",
     A_TEXT(AT(ready_file), "PATH"),
     .help = "Write this file (JSON: pid, addresses) once the node serves. It is removed when the node stops."},
    {.name = "policy-file",
     A_TEXT(AT(policy_file), "PATH"),
     .help = "Read from this JSON file which scope each route of your services needs. Without it, the built-in table "
             "for /v1/patients, /v1/documents and others applies. SIGHUP rereads the file."},
    {.name = "grant-policy",
     A_CHOICE(AT(grant_policy), "subset", "subset|any"),
     .is_agreed = true,
     .help = "Let a key create keys only with a subset of its own scopes, or with any scopes."},
    {.name = "trusted-proxies",
     A_TEXT(AT(trusted_proxies), "CIDR,…"),
     .help = "Trust X-Forwarded-For from these networks, such as 10.0.0.0/8,fd00::/8. The client is the last address "
             "in it that lies in none of them."},
    {.name = "proxy-protocol",
     A_FLAG(AT(proxy_protocol)),
     .help = "Expect a PROXY header (version 2) from one of --trusted-proxies at the beginning of each connection to "
             "--listen, and take the client's address from it. Any other connection is closed."},
    {.name = "internal-proxy-protocol",
     A_FLAG(AT(internal_proxy_protocol)),
     .help = "The same for --internal-listen. Health checks without a header then fail, 'chatelaine ready' too."},
    {.name = "check-status",
     A_CHOICE(AT(check_status), "exact", "exact|strict401"),
     .help = "Status of a refused check: the same as on the public listener, or only 401 and 403, for nginx "
             "auth_request. Failures stay 500 and 503. X-Auth-Error has the exact code."},
    {.name = "device-clients",
     A_TEXT(AT(device_clients), "IDS"),
     .default_text = "desktop-agent",
     .is_agreed = true,
     .help = "Let devices with these client ids enrol (OAuth 2.0 device grant). Separate them with commas."},
    {.name = "lease-ms",
     A_TIME(AT(lease_ms), "1s", 0, LEASE_MS_MAX),
     .is_agreed = true,
     .help = "Answer checks from memory for this long without hearing from Redis. A revocation waits up to 1.25 times "
             "the longest lease of any node, plus 50 ms, for nodes that do not acknowledge. 0 turns the cache off (not "
             "with Sentinel): every check reads Redis."},
    {.name = "cache-entries",
     AN_INTEGER(AT(cache_entries), "1000000", 64, 100000000),
     .help = "Cache at most this many keys."},
    {.name = "cache-bytes",
     A_SIZE(AT(cache_bytes), "96MiB", 65536, 17179869184),
     .help = "Use at most this much memory for cached keys, 96 bytes each. Unused memory costs nothing."},
    {.name = "table",
     A_TEXT(AT(table), "PATH"),
     .help = "Share which keys are accepted with gateways and backends on this machine, which then check requests in "
             "their own process: they get a table in memory from this Unix socket (mode 0660)."},
    {.name = "table-keys",
     AN_INTEGER(AT(table_keys), "100000", 64, 100000000),
     .help = "Share at most about this many keys, about 110 bytes each."},
    {.name = "table-deployment",
     A_TEXT(AT(table_deployment), "NAME"),
     .default_text = "",
     .help =
         "The name of this deployment, so that a gateway configured with that name rejects any other table. At most 63 "
         "bytes."},
    {.name = "session-idle-ms",
     A_TIME(AT(session_idle_ms), "30min", 1000, 604800000),
     .is_agreed = true,
     .help = "End a console session that has not been used for this long."},
    {.name = "session-absolute-ms",
     A_TIME(AT(session_absolute_ms), "12h", 1000, 2592000000),
     .is_agreed = true,
     .help = "End a console session this long after it began, used or not."},
    {.name = "step-up-ms",
     A_TIME(AT(step_up_ms), "5min", 1000, 3600000),
     .is_agreed = true,
     .help = "Let a user create keys and approve devices for this long after a step-up (entering password and code "
             "again)."},
    {.name = "usage-flush-ms",
     A_TIME(AT(usage_flush_ms), "1s", 10, 60000),
     .help = "Write usage counts of keys to Redis this often. A crash loses at most one interval."},
    {.name = "canary-interval-ms",
     A_TIME(AT(canary_interval_ms), "1min", 0, 3600000),
     .help =
         "Revoke a test key of the deployment's own this often, and see that every node refuses it (the canary). One "
         "node at a time does. At least 1s; 0 turns it off."},
    {.name = "password-parallel",
     AN_INTEGER(AT(password_parallel), "2", 1, 64),
     .help = "Hash this many passwords at the same time. Each takes 128 MiB."},
    {.name = "password-queue",
     AN_INTEGER(AT(password_queue), "32", 0, 10000),
     .help = "Queue at most this many passwords for hashing. There are two such queues: one for sign-ins from unknown "
             "browsers, one for known browsers and step-ups. When a queue is full, the request is answered 503."},
    {.name = "drain-ms",
     A_TIME(AT(drain_ms), "30s", 0, 3600000),
     .help = "After SIGTERM, answer requests for at most this long, until nobody sends any; then exit."},
    {.name = "access-log-sample",
     AN_INTEGER(AT(access_log_sample), "0", 0, 1000000000),
     .help = "Log one of N requests, drawn at random, with route, status and duration; 1 logs each. 0 logs none. "
             "Refusals are logged anyway."},
    {.name = "watchers-max",
     AN_INTEGER(AT(watchers_max), "64", 0, WATCHERS_MAX),
     .help = "Tell at most this many gateways and backends at once, on the internal listener, what is revoked "
             "(/check/watch). More get 503. 0 turns it off; it needs leases."},
    {.name = "watch-names",
     A_TEXT(AT(watch_names), "NAMES"),
     .default_text = "",
     .help =
         "Tell only clients with these names, separated by commas, what is revoked: the first DNS name or URI in the "
         "subjectAltName of their certificate, else its common name, else sha256: and its digest in hex; unix is "
         "whoever uses --check-socket. Others get 403. Empty: all clients that have a certificate. It needs a client "
         "CA of the internal listener."},
};

static const struct option_row TLS_ROWS[] = {
    {.name = "tls-cert",
     A_TEXT(AT(tls_cert), "PATH,…"),
     .help = "Speak TLS on the public listener with the certificate in this PEM file, followed by those that lead to "
             "its CA. With "
             "several files, a client gets the one for the name it asks for, or else the first. Changed files are "
             "loaded within seconds, and on SIGHUP. A unix: listener stays plain."},
    {.name = "tls-key",
     A_TEXT(AT(tls_key), "PATH,…"),
     .help = "The private keys of --tls-cert, in the same order: PEM files without a passphrase that only the node's "
             "user can read."},
    {.name = "internal-tls-cert",
     A_TEXT(AT(internal_tls_cert), "PATH,…"),
     .help = "The same as --tls-cert, for the internal listener."},
    {.name = "internal-tls-key",
     A_TEXT(AT(internal_tls_key), "PATH,…"),
     .help = "The private keys of --internal-tls-cert."},
    {.name = "internal-client-ca",
     A_TEXT(AT(internal_client_ca), "PATH"),
     .help = "Answer only clients of the internal listener that show a certificate of one of the CAs in this PEM file. "
             "/livez and /readyz need none."},
};

static const struct option_row LIMIT_ROWS[] = {
    {.name = "head-max-bytes",
     A_SIZE(AT(limits.head_max_bytes), "16KiB", 1024, 65536),
     .help = "Answer 431 if request line and headers are longer than this."},
    {.name = "fields-max",
     AN_INTEGER(AT(limits.fields_max), "100", 8, 1000),
     .help = "Answer 431 if a request has more header fields than this."},
    {.name = "target-max-bytes",
     A_SIZE(AT(limits.target_max_bytes), "8000", 256, 65536),
     .help = "Answer 414 if path and query are longer than this."},
    {.name = "body-max-bytes",
     A_SIZE(AT(limits.body_max_bytes), "64KiB", 1024, 1048576),
     .help = "Answer 413 if the body is longer than this."},
    {.name = "head-timeout-ms",
     A_TIME(AT(limits.head_timeout_ms), "10s", 10, 600000),
     .help = "Wait this long for a complete head after its first byte; then answer 408."},
    {.name = "body-timeout-ms",
     A_TIME(AT(limits.body_timeout_ms), "10s", 10, 600000),
     .help = "Wait this long for the next byte of a body; then answer 408."},
    {.name = "body-total-timeout-ms",
     A_TIME(AT(limits.body_total_timeout_ms), "30s", 10, 600000),
     .help = "Wait this long for the whole body; then answer 408."},
    {.name = "body-min-bytes-per-s",
     AN_INTEGER(AT(limits.body_min_bytes_per_s), "200", 0, 1000000),
     .help = "Refuse a slower body with 408 once it has taken longer than --body-timeout-ms. 0 turns this off."},
    {.name = "idle-timeout-ms",
     A_TIME(AT(limits.idle_timeout_ms), "75s", 10, 3600000),
     .help = "Close a connection that has sent no request for this long."},
    {.name = "write-timeout-ms",
     A_TIME(AT(limits.write_timeout_ms), "30s", 10, 600000),
     .help = "Close a connection that has not read a byte of its response for this long."},
    {.name = "write-min-bytes-per-s",
     AN_INTEGER(AT(limits.write_min_bytes_per_s), "1000", 0, 1000000),
     .help = "Close a connection that reads a large response more slowly than this on average during "
             "--write-timeout-ms. 0 turns this off."},
    {.name = "waiting-max-bytes",
     A_SIZE(AT(limits.waiting_max_bytes), "64MiB", 1048576, 4294967296),
     .help = "Per listener, hold at most this much memory for unfinished requests, and the same amount again for "
             "unread responses. Beyond it, the connection that holds the most is closed."},
    {.name = "reads-per-second",
     AN_INTEGER(AT(reads_per_second), "100", 0, 100000),
     .help = "Answer this many reads of the store per second, for people, live keys and test keys of an account "
             "each, and twice as many at once; beyond it, 429. Checks do not count. 0 turns this off."},
    {.name = "work-per-account",
     AN_INTEGER(AT(work_per_account), "4", 1, 64),
     .help = "Run this many searches, exports and reports of an account at once, and twice as many of all accounts; "
             "others wait, at most 10 s, then 429. More of them delay other accounts' requests."},
    {.name = "connections-max",
     AN_INTEGER(AT(limits.connections_max), "50000", 1, 1000000),
     .help = "Accept this many connections per listener. Beyond it, the longest idle one is closed for a new one; if "
             "none is idle, the new one is answered 503."},
    {.name = "tls-handshakes-max",
     AN_INTEGER(AT(limits.tls_handshakes_max), "1000", 1, 1000000),
     .help =
         "Allow this many TLS handshakes in progress per listener, each for up to --head-timeout-ms. Beyond it, the "
         "one that has waited longest for its client is closed, or else the new one."},
};

const struct option_table SETTINGS_STORE = TABLE(STORE_ROWS);
const struct option_table SETTINGS_KEYS = TABLE(KEY_ROWS);
const struct option_table SETTINGS_LOG = TABLE(LOG_ROWS);
const struct option_table SETTINGS_NODE = TABLE(NODE_ROWS);
const struct option_table SETTINGS_TLS = TABLE(TLS_ROWS);
const struct option_table SETTINGS_ORIGIN = TABLE(ORIGIN_ROWS);
const struct option_table SETTINGS_REVOCATIONS = TABLE(REVOCATION_ROWS);
const struct option_table SETTINGS_AUDIT = TABLE(AUDIT_ROWS);
const struct option_table SETTINGS_LIMITS = TABLE(LIMIT_ROWS);

const struct option_row *const SETTINGS_FILES_ROW = &STORE_ROWS[0];

void unknown_setting_print(const struct unknown_setting *unknown, struct buf *out)
{
    if (unknown->where)
        buf_printf(out, "%s: ", unknown->where);
    buf_append_printable(out, text_of(unknown->name));
    buf_append_str(out, " is no setting and has no effect");
    buf_printf(out, unknown->meant[0] ? "; did you mean %s?" : ".", unknown->meant);
}

/* Files besides connections: listeners, links to Redis and Sentinels, the log, the loop's own, and connections beyond
 * the limit that are answered 503. */
enum { LISTENERS = 2, FILES_BESIDE_CONNECTIONS = 256 };

uint64_t settings_files_needed(const struct settings *settings)
{
    return (uint64_t)settings->limits.connections_max * LISTENERS + FILES_BESIDE_CONNECTIONS;
}

int64_t settings_connections_within(const struct settings *settings, uint64_t files)
{
    if (files >= settings_files_needed(settings))
        return settings->limits.connections_max;
    return files < FILES_BESIDE_CONNECTIONS + LISTENERS ? 1 : (int64_t)(files - FILES_BESIDE_CONNECTIONS) / LISTENERS;
}

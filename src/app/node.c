#include "node_internal.h"
#include "ready_file.h"

#include "admin/command.h"
#include "api/routes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/process_metrics.h"
#include "config/key_file.h"
#include "core/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NODE_MISTAKES_MAX_BYTES = 64 * 1024 };
/* What a gateway may add to the head of the request that it asks about, besides the target. */
enum { GATEWAY_FIELDS = 28, GATEWAY_HEAD_BYTES = 4096 };

struct node *node_create(uv_loop_t *loop, const struct settings *settings, const struct node_events *events)
{
    struct node *node = mem_alloc(sizeof *node);

    node->loop = loop;
    node->settings = settings;
    node->events = *events;
    node->turn = turn_create(loop);
    node->clock_zero_ms = clock_zero_ms();
    process_metrics_begin();
    return node;
}

const char *node_address(const struct node *node)
{
    return node->address;
}

const char *node_internal_address(const struct node *node)
{
    return node->internal_address;
}

static bool is_unready(const struct node *node, unsigned part)
{
    return !store_is_ready(node->parts[part].store);
}

static bool has_no_lease(const struct node *node, unsigned part)
{
    uint64_t now_ns;

    return !membership_has_lease(node->members[part], &now_ns);
}

/* ret_first: the first partition with that trouble, if any has it. */
static unsigned count_troubled(const struct node *node, bool (*is_troubled)(const struct node *node, unsigned part),
                               unsigned *ret_first)
{
    unsigned count = 0;

    for (unsigned i = partitions_count(node->partitions); i-- > 0;) {
        if (!is_troubled(node, i))
            continue;
        *ret_first = i;
        count++;
    }
    return count;
}

/* The first partition with trouble, or else the first. */
static void view_part(const struct node *node, struct node_view *view)
{
    unsigned part = 0;

    view->partitions = partitions_count(node->partitions);
    view->troubled = count_troubled(node, is_unready, &part);
    if (view->troubled == 0)
        view->troubled = count_troubled(node, has_no_lease, &part);
    view->store = node->parts[part].store;
    view->member = node->members[part];
}

struct node_view node_view(const struct node *node)
{
    struct node_view view = {.is_serving = node->is_serving, .is_stopping = node->is_stopping};

    if (node->public_server && node->internal_server)
        view.connections =
            http_server_connections(node->public_server) + http_server_connections(node->internal_server);
    if (!node->is_stopping && node->parts)
        view_part(node, &view);
    return view;
}

/* Setup */

static void on_durability_noted(void *arg, enum store_result result)
{
    struct node_part *part = arg;

    part->durability = result == STORE_OK ? DURABILITY_NOTED : DURABILITY_NOT_NOTED;
}

/* Once; if Redis is lost meanwhile, again when it is back. */
static void note_durability(struct node_part *part)
{
    if (part->durability != DURABILITY_NOT_NOTED || !store_is_ready(part->store))
        return;
    part->durability = DURABILITY_IS_NOTED;
    store_note_durability(part->store, on_durability_noted, part);
}

static void log_readiness(const struct node_part *part)
{
    const struct node *node = part->node;
    struct log_field number = log_int("partition", part - node->parts);

    number.is_absent = partitions_count(node->partitions) == 1;
    if (store_is_ready(part->store))
        LOG(LOG_INFO, "the store is ready again", log_str("address", node->address), number);
    else
        LOG(LOG_WARN, "the store is not ready: requests are answered 503", log_str("why", store_trouble(part->store)),
            number);
}

static void node_store_changed(void *arg, struct store *store)
{
    struct node *node = arg;
    struct node_part *part = node->parts;

    if (node->is_stopping || !node->is_serving)
        return;
    while (part->store != store)
        part++;
    note_durability(part);
    log_readiness(part);
}

static void node_announce(struct node *node)
{
    struct buf why = BUF_FIXED(NODE_WHY_MAX_BYTES);

    LOG(LOG_INFO, "node serves", log_str("address", node->address), log_str("internal_address", node->internal_address),
        log_str("server", store_server(node->parts[0].store)), log_int("pid", getpid()));
    if (node->settings->ready_file &&
        !ready_file_write(node->settings->ready_file, node->address, node->internal_address, &why))
        LOG(LOG_ERROR, "cannot write the ready file", log_text("why", buf_text(&why)));
}

/* result: of binding or listening. */
static int node_judge_listening(int result, const char *option, const char *address)
{
    if (result == UV_EADDRINUSE)
        return command_fail(EXIT_FAILED,
                            "%s %s is in use by another program; choose another address, or port 0 for any free port",
                            option, address);
    if (result != 0)
        return command_fail(result == UV_EINVAL ? EXIT_USAGE : EXIT_FAILED,
                            "can't listen on %s %s: %s; it must be host:port, [v6]:port or unix:/path", option, address,
                            uv_strerror(result));
    return EXIT_DONE;
}

static void node_gated(void *arg, enum startup_gate_result result, const char *why)
{
    struct node *node = arg;

    if (result == STARTUP_GATE_OPEN) {
        int code = node_judge_listening(http_server_open(node->public_server), "--listen", node->address);

        if (code != EXIT_DONE) {
            node->events.unfit(node->events.arg, code);
            return;
        }
        node->is_serving = true;
        node->service.starting = false;
        node_announce(node);
        for (unsigned i = 0; i < partitions_count(node->partitions); i++)
            note_durability(&node->parts[i]);
        node->events.serving(node->events.arg, node);
        return;
    }
    int code = command_fail(
        EXIT_UNFIT, "%s 'chatelaine doctor' lists every problem%s", why,
        result == STARTUP_GATE_UNSAFE ? ". --unsafe-redis serves anyway, and a crash may then lose changes" : "");
    node->events.unfit(node->events.arg, code);
}

/* The headers of every response on both listeners. */
static void node_make_fixed_headers(struct node *node, struct text *ret_headers)
{
    struct buf out;

    buf_init_fixed(&out, node->fixed_headers, sizeof node->fixed_headers);
    buf_append_str(&out, "Cache-Control: no-store\r\n"
                         "X-Content-Type-Options: nosniff\r\n"
                         "Referrer-Policy: no-referrer\r\n"
                         "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
                         "Cross-Origin-Resource-Policy: same-origin\r\n");
    if (settings_origin_is_https(node->settings->public_origin))
        buf_append_str(&out, "Strict-Transport-Security: max-age=63072000; includeSubDomains\r\n");
    *ret_headers = buf_text(&out);
}

static int node_listen_for_checks(struct node *node)
{
    const char *path = node->settings->check_socket;
    int result;

    if (!path)
        return EXIT_DONE;
    result = path[0] == '/' ? http_server_listen_socket(node->internal_server, path) : UV_EINVAL;
    if (result == UV_EADDRINUSE)
        return command_fail(EXIT_FAILED, "--check-socket %s is in use by another program; choose another path", path);
    if (result != 0)
        return command_fail(result == UV_EINVAL || result == UV_ENAMETOOLONG ? EXIT_USAGE : EXIT_FAILED,
                            "can't listen on --check-socket %s: %s; it must be an absolute path of at most 107 bytes, "
                            "in a folder where the node may write",
                            path, uv_strerror(result));
    return EXIT_DONE;
}

/* For the internal listener. A check carries the head of a public request, and its target once more. The body that it
 * announces is never read. */
static void node_widen_limits(struct http_limits *limits)
{
    limits->head_max_bytes += limits->target_max_bytes + GATEWAY_HEAD_BYTES;
    limits->target_max_bytes += GATEWAY_HEAD_BYTES;
    limits->fields_max += GATEWAY_FIELDS;
    limits->body_max_bytes = INT64_MAX;
}

/* Without free descriptors, new connections could only be closed without a response. So the node accepts fewer
 * connections, and logs that. */
static int64_t node_connections_max(const struct settings *settings)
{
    struct rlimit files;
    int64_t most;

    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    most = settings_connections_within(settings, files.rlim_cur);
    if (most < settings->limits.connections_max)
        LOG(LOG_WARN, "the open-files limit is too low for --connections-max: the node accepts fewer connections",
            log_int("connections", most), log_int("files", (int64_t)files.rlim_cur),
            log_int("needed_files", (int64_t)settings_files_needed(settings)));
    return most;
}

/* Of the public listener. */
static struct http_settings node_http_settings(const struct node *node)
{
    const struct settings *s = node->settings;

    return (struct http_settings){
        .limits = s->limits,
        .body_raised_max_bytes = API_BODY_RAISED_MAX_BYTES,
        .make_id = api_make_request_id,
        .print_error = api_print_error,
        .trusts_proxy = s->proxy_protocol ? api_trusts_proxy : NULL,
        .turn = node->turn,
    };
}

static int node_start_http(struct node *node)
{
    const struct settings *s = node->settings;
    struct http_settings http = node_http_settings(node);
    int code;

    http.limits.connections_max = node_connections_max(s);
    node_make_fixed_headers(node, &http.fixed_headers);
    node->service.console = &node->console;
    console_init(&node->console, settings_origin_is_https(s->public_origin));
    if (s->redirects_localhost)
        console_redirect_localhost(&node->console, text_of(s->public_origin));
    node->public_server = http_server_create(node->loop, &http, api_handle_public, &node->service);
    node_widen_limits(&http.limits);
    http.is_internal = true;
    http.print_error = api_print_internal_error;
    http.trusts_proxy = s->internal_proxy_protocol ? api_trusts_proxy : NULL;
    node->internal_server = http_server_create(node->loop, &http, api_handle_internal, &node->service);
    node_tls_begin(&node->tls, node->public_server, node->internal_server);
    /* Opened once the node is ready: a gateway that does not look at /readyz would send it requests until then. */
    code = node_judge_listening(http_server_bind(node->public_server, s->listen, s->reuse_port, node->address),
                                "--listen", s->listen);
    if (code != EXIT_DONE)
        return code;
    code = node_judge_listening(
        http_server_listen(node->internal_server, s->internal_listen, s->reuse_port, node->internal_address),
        "--internal-listen", s->internal_listen);
    return code == EXIT_DONE ? node_listen_for_checks(node) : code;
}

static void node_fill_service(struct node *node)
{
    const struct settings *s = node->settings;

    node->service = (struct service){
        .keyring = node->own.keyring,
        .partitions = node->partitions,
        .checker = node->checker,
        .passwords = node->passwords,
        .usage = node->usage,
        .gate = node_gate_of(node->work_gate),
        .watch_feed = node->watch_feed,
        .watchers_max = (unsigned)s->watchers_max,
        .watch_names = text_of(s->watch_names),
        .revocation_log = node->revocation_log,
        .policy = node->own.policy,
        .trusted_proxies = node->own.trusted_proxies,
        .session_limits = {.idle_ms = s->session_idle_ms,
                           .absolute_ms = s->session_absolute_ms,
                           .step_up_ms = s->step_up_ms},
        .public_origin = text_of(s->public_origin),
        .device_clients = text_of(s->device_clients),
        .grant_any = s->grant_policy == GRANT_ANY,
        .needs_client_certificate = s->internal_client_ca,
        .checks_hosts = !s->internal_tls_cert,
        .internal_hosts = text_of(s->internal_hosts),
        .strict401 = s->check_status == CHECK_STATUS_STRICT401,
        .target_max_bytes = (size_t)s->limits.target_max_bytes,
        .canary_interval_ms = s->canary_interval_ms,
        .access_log_sample = (uint64_t)s->access_log_sample,
        .starting = true,
    };
}

static bool open_logs(struct node *node, struct buf *ret_why)
{
    const struct settings *s = node->settings;
    const struct audit_log_settings audit = {
        .path = s->audit_log, .keyring = node->own.keyring, .write_within_ms = AUDIT_LOG_WRITE_WITHIN_MS};

    if (s->revocation_log) {
        node->revocation_log = revocation_log_open(s->revocation_log, ret_why);
        if (!node->revocation_log)
            return false;
    }
    if (s->audit_log) {
        node->audit_log = audit_log_open(node->loop, &audit, ret_why);
        if (!node->audit_log)
            return false;
    }
    return true;
}

/* Finds everything that can be wrong before anything runs. */
static bool node_read_settings(struct node *node, struct buf *ret_why)
{
    return node_settings_read(node->settings, NODE_SETTINGS_FOLDERS, &node->own, ret_why) && open_logs(node, ret_why) &&
           node_tls_open(&node->tls, node->loop, node->settings, node->own.keyring, ret_why);
}

static void node_log_start(const struct node *node)
{
    struct buf target = BUF_FIXED(STORE_URL_MAX_BYTES);

    store_target_print(&node->own.store.target, &target);
    LOG(LOG_INFO, "node starts", log_str("version", CHATELAINE_VERSION), log_str("address", node->address),
        log_str("internal_address", node->internal_address), log_text("redis", buf_text(&target)),
        log_str("public_origin", node->settings->public_origin));
    if (node->settings->unsafe_redis)
        LOG(LOG_WARN,
            "--unsafe-redis: Redis may lose acknowledged changes, and a lost revocation brings its key back to life",
            log_text("redis", buf_text(&target)));
    if (node->own.store.durability_asserted)
        LOG(LOG_WARN, "--redis-durability asserted: if Redis loses an acknowledged write, a revoked key is valid again",
            log_text("redis", buf_text(&target)));
    metric_set(METRIC_REDIS_DURABILITY_ASSERTED, node->own.store.durability_asserted);
}

static void node_open_store(struct node *node)
{
    node->own.store.on_key_ended = api_log_ended_key;
    node->own.store.on_key_ended_arg = &node->service;
    node->partitions = partitions_create(node->loop, &node->own.store, node_store_changed, node);
    redis_access_start(node->own.store.target.access, node->loop);

    unsigned count = partitions_count(node->partitions);

    node->parts = mem_alloc(count * sizeof *node->parts);
    node->members = mem_alloc(count * sizeof *node->members);
    for (unsigned i = 0; i < count; i++)
        node->parts[i] = (struct node_part){.node = node, .store = partitions_at(node->partitions, i)};
    if (node->audit_log)
        node->audit_keeper = audit_keeper_create(node->partitions, node->audit_log);
    node->logged_endings = logged_endings_create(
        node->loop, &(struct logged_endings_settings){.revocation_log = node->settings->revocation_log,
                                                      .audit_log = node->settings->audit_log,
                                                      .keyring = node->own.keyring,
                                                      .partitions = count});
    for (unsigned i = 0; i < count; i++) {
        struct lease *lease = store_lease(node->parts[i].store);

        gathering_set_logs(lease_gathering(lease), logged_endings_of(node->logged_endings, i));
        node->members[i] = lease_join(lease, &node->own.store.target, (uint32_t)node->settings->lease_ms);
    }
}

/* What the node says of itself, and what it tries on itself. */
static void node_begin_reports(struct node *node)
{
    const struct settings *s = node->settings;

    node->report = node_report_create(node->loop, &(struct node_reported){.settings = s,
                                                                          .partitions = node->partitions,
                                                                          .members = node->members,
                                                                          .keyring = node->own.keyring,
                                                                          .access = node->own.store.target.access,
                                                                          .policy = &node->own.policy,
                                                                          .tls = &node->tls,
                                                                          .revocation_log = node->revocation_log,
                                                                          .address = node->address,
                                                                          .internal_address = node->internal_address,
                                                                          .look = node_look,
                                                                          .arg = node});
    if (node->audit_log)
        audit_log_name(node->audit_log, node_report_name(node->report));
    if (s->canary_interval_ms > 0)
        node->canary = canary_create(node->loop,
                                     &(struct canary_settings){.interval_ms = s->canary_interval_ms,
                                                               .node = text_of(node_report_name(node->report))},
                                     node->own.keyring, node->partitions, node->checker);
}

int node_open(struct node *node)
{
    const struct settings *s = node->settings;
    const struct key_memory memory = {(size_t)s->cache_entries, (size_t)s->cache_bytes};
    struct buf mistakes CLEANUP(buf_finish) = BUF_UP_TO(NODE_MISTAKES_MAX_BYTES);

    if (!node_read_settings(node, &mistakes))
        return command_refuse(buf_text(&mistakes));
    node_open_store(node);
    node->passwords = password_pool_create(node->loop, node->own.keyring, (unsigned)s->password_parallel,
                                           (unsigned)s->password_queue);
    node->work_gate = node_gate_create(node->loop, s);
    node->usage = usage_create(node->loop, node->partitions, (uint32_t)s->usage_flush_ms);
    int code = node_create_table(node);
    if (code != EXIT_DONE)
        return code;
    node->checker = key_checker_create(node->own.keyring, node->partitions, node->members, node->usage, &memory,
                                       node->table, node->turn);
    if (s->lease_ms > 0 && s->watchers_max > 0)
        node->watch_feed = watch_feed_create(node->loop, node->partitions, node->members);
    node_fill_service(node);
    code = node_serve_table(node);
    if (code == EXIT_DONE)
        code = node_start_http(node);
    if (code != EXIT_DONE)
        return code;
    node_begin_reports(node);
    node->gate = startup_gate_create(node->loop, node->partitions, s->unsafe_redis, node_gated, node);
    node_log_start(node);
    return EXIT_DONE;
}

#include "node_settings.h"

#include "api/routes.h"
#include "auth/canary.h"
#include "base/append_file.h"
#include "chatelaine/check.h"
#include "config/key_file.h"
#include "config/tls_files.h"
#include "core/device.h"
#include "http/server.h"
#include "node_tls.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

enum { WHY_MAX_BYTES = 8 * 1024, POLICY_MAX_BYTES = 1024 * 1024 };
enum { SOCKET_PATH_MAX_BYTES = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1 };

#define UNIX TEXT("unix:")

static bool validate_origin(const struct settings *s, struct buf *ret_why)
{
    if (s->public_origin)
        return settings_validate_origin(s->public_origin, ret_why);
    buf_append_str(ret_why, "--public-origin is required, as in https://console.example.org");
    return false;
}

static bool read_store(const struct settings *s, struct node_settings *node, struct buf *ret_why)
{
    node->has_store = store_settings_read(s, &node->store, ret_why);
    return node->has_store;
}

static bool read_failover(UNUSED const struct settings *s, struct node_settings *node, struct buf *ret_why)
{
    return !node->has_store || store_settings_survive_failover(&node->store, ret_why);
}

static bool read_leases(const struct settings *s, struct node_settings *node, struct buf *ret_why)
{
    const struct store_settings *store = &node->store;

    if (s->lease_ms > 0 || !node->has_store || (store->target.found == REDIS_AT_HOST && !store->durability_asserted))
        return true;
    buf_printf(ret_why,
               "%s needs leases, because only a lease tells a master from a replaced one: set --lease-ms above 0%s",
               store->durability_asserted ? "--redis-durability asserted" : redis_target_scheme(&store->target),
               store->durability_asserted ? "" : ", or name a single Redis");
    return false;
}

static bool validate_clients(const struct settings *s, struct buf *ret_why)
{
    if (device_clients_valid(text_of(s->device_clients)))
        return true;
    buf_append_str(ret_why, "--device-clients must be client ids (A-Z a-z 0-9 . _ -), separated by commas, as in "
                            "desktop-agent,ward-scanner");
    return false;
}

static bool validate_canary(const struct settings *s, struct buf *ret_why)
{
    if (s->canary_interval_ms == 0 || s->canary_interval_ms >= CANARY_INTERVAL_MIN_MS)
        return true;
    buf_append_str(ret_why, "--canary-interval-ms must be 0, for no canary, or at least 1s");
    return false;
}

static bool read_proxies(const struct settings *s, struct node_settings *node, struct buf *ret_why)
{
    if (!s->trusted_proxies)
        return true;
    buf_append_str(ret_why, "--trusted-proxies: ");
    node->trusted_proxies = address_ranges_parse(text_of(s->trusted_proxies), ret_why);
    return node->trusted_proxies;
}

/* Where clients connect. */
struct node_place {
    const char *option;
    size_t address;           /* in the settings: an address or a path */
    const char *proxy_option; /* of a listener; NULL: it is no listener, but a path, which may be NULL */
    size_t has_proxy;
};

#define AT(field) offsetof(struct settings, field)
static const struct node_place PUBLIC = {"--listen", AT(listen), "--proxy-protocol", AT(proxy_protocol)};
static const struct node_place INTERNAL = {"--internal-listen", AT(internal_listen), "--internal-proxy-protocol",
                                           AT(internal_proxy_protocol)};
static const struct node_place CHECK_SOCKET = {"--check-socket", AT(check_socket), NULL, 0};
static const struct node_place TABLE = {"--table", AT(table), NULL, 0};

static const char *address_of(const struct settings *s, const struct node_place *at)
{
    return *(const char *const *)(const void *)((const char *)s + at->address);
}

/* A PROXY header decides which client a failure counts against, so its sender must be trusted by address. A peer of a
 * Unix socket has none. */
static bool validate_proxy(const struct settings *s, const struct node_place *at, struct buf *ret_why)
{
    if (!*((const bool *)s + at->has_proxy))
        return true;
    if (!s->trusted_proxies)
        buf_printf(ret_why, "%s needs --trusted-proxies: name the networks that the balancer connects from",
                   at->proxy_option);
    else if (text_starts_with(text_of(address_of(s, at)), UNIX))
        buf_printf(ret_why, "%s needs host:port in %s: --trusted-proxies cannot name who connects to %s",
                   at->proxy_option, at->option, address_of(s, at));
    else
        return true;
    return false;
}

static void explain_socket(const char *option, const char *path, int error, bool is_absolute, struct buf *ret_why)
{
    buf_printf(ret_why,
               "can't listen on %s %s: %s; it must be %s of at most %d bytes, in a folder where the node may write%s",
               option, path, uv_strerror(error), is_absolute ? "an absolute path" : "a path", SOCKET_PATH_MAX_BYTES,
               append_file_hint(-error));
}

static bool validate_socket_path(const char *option, const char *path, bool is_absolute, struct buf *ret_why)
{
    size_t length = strlen(path);
    int error = length == 0 || (is_absolute && path[0] != '/') ? UV_EINVAL
                : length > SOCKET_PATH_MAX_BYTES               ? UV_ENAMETOOLONG
                                                               : 0;
    struct stat about;

    if (error != 0)
        explain_socket(option, path, error, is_absolute, ret_why);
    else if (lstat(path, &about) == 0 && !S_ISSOCK(about.st_mode))
        buf_printf(ret_why,
                   "can't listen on %s %s: the file there is not a socket; move it away, or choose another path",
                   option, path);
    else
        return true;
    return false;
}

/* The units make folders below /run when a node starts. */
static bool validate_folder(const struct settings *s, const struct node_place *at, struct buf *ret_why)
{
    const char *path = address_of(s, at), *file = path;
    char copy[SOCKET_PATH_MAX_BYTES + 1];

    if (!path || (at->proxy_option && !text_starts_with(text_of(path), UNIX)))
        return true;
    if (text_starts_with(text_of(path), UNIX))
        file += UNIX.len;
    if (strlen(file) > SOCKET_PATH_MAX_BYTES || text_starts_with(text_of(file), TEXT("/run/")))
        return true;
    memcpy(copy, file, strlen(file) + 1);
    if (faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS) == 0)
        return true;
    explain_socket(at->option, path, uv_translate_sys_error(errno), false, ret_why);
    return false;
}

/* Whether this process may take the port. Asked with UDP, which has the same rule and meets no listener. */
static bool validate_port(const char *option, const char *shown, struct sockaddr_storage *address, struct buf *ret_why)
{
    int fd = http_address_socket(address, SOCK_DGRAM | SOCK_CLOEXEC);
    socklen_t bytes = address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    bool is_denied = fd >= 0 && bind(fd, (const struct sockaddr *)address, bytes) != 0 && errno == EACCES;

    if (fd >= 0)
        close(fd);
    if (is_denied)
        buf_printf(ret_why,
                   "can't listen on %s %s: ports below 1024 need CAP_NET_BIND_SERVICE: grant it with the drop-in that "
                   "chatelaine.service describes, or choose a port from 1024 on",
                   option, shown);
    return !is_denied;
}

static bool validate_address(const struct settings *s, const struct node_place *at, struct buf *ret_why)
{
    struct sockaddr_storage parsed = {0};
    const char *address = address_of(s, at), *colon = strrchr(address, ':');
    uint64_t port;

    if (text_starts_with(text_of(address), UNIX))
        return validate_socket_path(at->option, address + UNIX.len, false, ret_why);
    if (http_address_read(text_of(address), &parsed) == 0)
        return validate_port(at->option, address, &parsed, ret_why);
    if (colon > address && strchr(address, ':') == colon && text_to_u64(text_of(colon + 1), UINT16_MAX, &port))
        buf_printf(ret_why, "can't listen on %s %s: it must be an address, not a name, as in 127.0.0.1:%s or [::1]:%s",
                   at->option, address, colon + 1, colon + 1);
    else
        buf_printf(ret_why, "can't listen on %s %s: it must be host:port, [v6]:port or unix:/path", at->option,
                   address);
    return false;
}

static bool validate_check_socket(const struct settings *s, struct buf *ret_why)
{
    return !s->check_socket || validate_socket_path("--check-socket", s->check_socket, true, ret_why);
}

static bool validate_table(const struct settings *s, struct buf *ret_why)
{
    if (!s->table)
        return true;
    if (s->lease_ms == 0)
        buf_append_str(ret_why, "--table needs the cache, which --lease-ms 0 turns off");
    else if (strlen(s->table_deployment) >= CHATELAINE_DEPLOYMENT_BYTES)
        buf_printf(ret_why, "--table-deployment must be at most %d bytes", CHATELAINE_DEPLOYMENT_BYTES - 1);
    else
        return validate_socket_path("--table", s->table, false, ret_why);
    return false;
}

struct route_policy *node_policy_load(const char *path, struct buf *ret_why)
{
    struct buf content CLEANUP(buf_finish) = {0};
    struct route_policy *policy = NULL;

    if (!path)
        return route_policy_built_in();
    buf_init(&content, POLICY_MAX_BYTES);
    buf_printf(ret_why, "--policy-file %s: ", path);
    if (secret_file_read(path, &content, ret_why))
        policy = route_policy_parse(buf_text(&content), api_owns_path, ret_why);
    if (policy)
        buf_clear(ret_why);
    return policy;
}

static bool read_policy(const struct settings *s, struct node_settings *node, struct buf *ret_why)
{
    node->policy = node_policy_load(s->policy_file, ret_why);
    return node->policy;
}

static bool read_keys(const struct settings *s, struct node_settings *node, struct buf *ret_why)
{
    node->keyring = node->store.keyring = key_file_load(s, ret_why);
    return node->keyring;
}

static bool validate_revocation_log(const struct settings *s, struct buf *ret_why)
{
    return !s->revocation_log || append_file_can_open(s->revocation_log, "revocation log", false, ret_why);
}

static bool validate_audit_log(const struct settings *s, struct buf *ret_why)
{
    return !s->audit_log || append_file_can_open(s->audit_log, "audit log", true, ret_why);
}

/* In this order: what a step needs comes before it. Each has one of the functions. */
static const struct step {
    unsigned part; /* an enum node_settings_part; 0: nobody else judges it */
    bool (*read)(const struct settings *s, struct node_settings *node, struct buf *ret_why);
    bool (*validate)(const struct settings *s, struct buf *ret_why);
    bool (*validate_place)(const struct settings *s, const struct node_place *at, struct buf *ret_why);
    const struct node_place *place;
} STEPS[] = {
    {NODE_SETTINGS_ORIGIN, .validate = validate_origin},
    {.read = read_store},
    {.read = read_failover},
    {.read = read_leases},
    {.validate = validate_clients},
    {.validate = validate_canary},
    {.validate_place = validate_address, .place = &PUBLIC},
    {.validate_place = validate_address, .place = &INTERNAL},
    {.validate_place = validate_proxy, .place = &PUBLIC},
    {.validate_place = validate_proxy, .place = &INTERNAL},
    {.validate = validate_check_socket},
    {.validate = validate_table},
    {NODE_SETTINGS_FOLDERS, .validate_place = validate_folder, .place = &PUBLIC},
    {NODE_SETTINGS_FOLDERS, .validate_place = validate_folder, .place = &INTERNAL},
    {NODE_SETTINGS_FOLDERS, .validate_place = validate_folder, .place = &CHECK_SOCKET},
    {NODE_SETTINGS_FOLDERS, .validate_place = validate_folder, .place = &TABLE},
    {.read = read_policy},
    {.read = read_proxies},
    {NODE_SETTINGS_KEYS, .read = read_keys},
    {.validate = validate_revocation_log},
    {.validate = validate_audit_log},
    {.validate = node_tls_validate_client_ca},
    {NODE_SETTINGS_CERTIFICATES, .validate = node_tls_validate_public},
    {NODE_SETTINGS_CERTIFICATES, .validate = node_tls_validate_internal},
};

static bool step_holds(const struct step *step, const struct settings *s, struct node_settings *node,
                       struct buf *ret_why)
{
    if (step->read)
        return step->read(s, node, ret_why);
    return step->validate ? step->validate(s, ret_why) : step->validate_place(s, step->place, ret_why);
}

bool node_settings_read(const struct settings *settings, unsigned but, struct node_settings *ret_node,
                        struct buf *ret_why)
{
    bool are_fit = true;

    *ret_node = (struct node_settings){0};
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        struct buf why = BUF_FIXED(WHY_MAX_BYTES);

        if ((STEPS[i].part & but) || step_holds(&STEPS[i], settings, ret_node, &why))
            continue;
        are_fit = false;
        if (ret_why->len > 0)
            buf_append_char(ret_why, '\n');
        buf_append_text(ret_why, buf_text(&why));
    }
    return are_fit;
}

void node_settings_finish(struct node_settings *node)
{
    keyring_destroy(node->keyring);
    route_policy_destroy(node->policy);
    address_ranges_destroy(node->trusted_proxies);
    store_settings_finish(&node->store);
}

void node_settings_judge(const struct settings *settings, struct buf *mistakes)
{
    struct node_settings node;

    (void)!node_settings_read(settings, 0, &node, mistakes);
    node_settings_finish(&node);
}

/* Settings, and CONFIG. */
#include "commands.h"
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static const char *const USUAL[][2] = {
    {"appendonly", "yes"},
    {"appendfsync", "always"},
    {"no-appendfsync-on-rewrite", "no"},
    {"maxmemory", "0"},
    {"maxmemory-policy", "noeviction"},
    {"min-replicas-to-write", "0"},
    {"min-replicas-max-lag", "10"},
    {"cluster-enabled", "no"},
    {"cluster-node-timeout", "15000"},
    {"cluster-require-full-coverage", "yes"},
    {"save", ""},
    {"timeout", "0"},
    {"stop-writes-on-bgsave-error", "yes"},
    {"requirepass", ""},
    {"port", "6379"},
    {"bind", "127.0.0.1"},
    {"unixsocket", ""},
    {"dir", "."},
    {"protected-mode", "no"},
    {"daemonize", "no"},
    {"loglevel", "notice"},
    {"repl-diskless-sync-delay", "5"},
    {"jemalloc-bg-thread", "yes"},
    {"replica-announce-ip", ""},
    {"replica-announce-port", "0"},
    {"enable-debug-command", "no"},
    {"replicaof", ""},
    {"masterauth", ""},
    {"repl-timeout", "60"},
    {"repl-ping-replica-period", "10"},
};

void settings_init(struct simredis *server)
{
    for (size_t i = 0; i < sizeof USUAL / sizeof *USUAL; i++)
        dict_set_text(dict_add(&server->settings, text_of(USUAL[i][0]), NULL), text_of(USUAL[i][1]));
}

struct text setting(const struct simredis *server, const char *name)
{
    return dict_find(&server->settings, text_of(name))->text;
}

uint64_t setting_number(const struct simredis *server, const char *name)
{
    uint64_t number = 0;

    return text_to_u64(setting(server, name), UINT64_MAX, &number) ? number : 0;
}

const char *simredis_setting(const struct simredis *server, const char *name)
{
    const struct dict_entry *entry = dict_find(&server->settings, text_of(name));

    return entry ? entry->text.ptr : NULL;
}

/* "100mb" */
static bool read_bytes(struct text text, uint64_t *ret_bytes)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } UNITS[] = {{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30},  {"b", 1},
                 {"k", 1000},     {"m", 1000000},  {"g", 1000000000}};

    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++) {
        size_t len = strlen(UNITS[i].unit);

        if (text.len <= len || !text_equal_nocase(text_skip(text, text.len - len), text_of(UNITS[i].unit)))
            continue;
        text.len -= len;
        if (!text_to_u64(text, UINT64_MAX / UNITS[i].bytes, ret_bytes))
            return false;
        *ret_bytes *= UNITS[i].bytes;
        return true;
    }
    *ret_bytes = 0;
    for (size_t i = 0; i < text.len; i++)
        if (!text_is_digit(text.ptr[i]))
            return false;
    if (text.len > 0 && !text_to_u64(text, UINT64_MAX, ret_bytes))
        *ret_bytes = UINT64_MAX;
    return true;
}

/* "host port"; "": nobody */
static bool follow(struct simredis *server, struct text value)
{
    struct text host;
    uint64_t port;

    if (value.len == 0) {
        replica_follow(server, (struct text){0}, 0);
        return true;
    }
    if (!text_next(&value, ' ', &host) || !text_to_u64(value, UINT16_MAX, &port))
        return false;
    replica_follow(server, host, (uint16_t)port);
    return true;
}

bool simredis_configure(struct simredis *server, const char *name, const char *value)
{
    struct dict_entry *entry = dict_find(&server->settings, text_of(name));
    uint64_t bytes;

    if (!entry)
        return false;
    if (strcmp(name, "requirepass") == 0)
        acl_set_password(server, text_of(value));
    if (strcmp(name, "replicaof") == 0)
        return follow(server, text_of(value));
    if (strcmp(name, "maxmemory") != 0) {
        dict_set_text(entry, text_of(value));
        return true;
    }
    if (!read_bytes(text_of(value), &bytes))
        return false;
    struct buf number = BUF_FIXED(24);
    buf_append_u64(&number, bytes);
    dict_set_text(entry, buf_text(&number));
    return true;
}

void cmd_config_get(struct call *call)
{
    struct dict_entry *entry;
    size_t place = 0, count = 0;
    struct text *found = mem_alloc((2 * call->server->settings.count + 1) * sizeof *found);

    while ((entry = dict_next(&call->server->settings, &place))) {
        bool is_asked = false;

        for (size_t i = 2; i < call->argc; i++)
            is_asked |= glob_matches(call->argv[i], entry->key, true);
        if (!is_asked)
            continue;
        found[count++] = entry->key;
        found[count++] = entry->text;
    }
    say_array(call, count);
    for (size_t i = 0; i < count; i++)
        say_text(call, found[i]);
    free(found);
}

void cmd_config_set(struct call *call)
{
    for (size_t i = 2; i + 1 < call->argc; i += 2) {
        if (!dict_find(&call->server->settings, call->argv[i])) {
            say_errorf(call, "ERR Unknown option or number of arguments for CONFIG SET - '%s'", call->argv[i].ptr);
            return;
        }
        if (!simredis_configure(call->server, call->argv[i].ptr, call->argv[i + 1].ptr)) {
            say_errorf(call,
                       "ERR CONFIG SET failed (possibly related to argument '%s') - argument must be a memory value",
                       call->argv[i].ptr);
            return;
        }
    }
    say_ok(call);
}

void cmd_config_resetstat(struct call *call)
{
    dict_finish(&call->server->calls);
    say_ok(call);
}

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

bool simredis_configure(struct simredis *server, const char *name, const char *value)
{
    struct dict_entry *entry = dict_find(&server->settings, text_of(name));
    uint64_t bytes;

    if (!entry)
        return false;
    if (strcmp(name, "requirepass") == 0)
        acl_set_password(server, text_of(value));
    if (strcmp(name, "maxmemory") != 0) {
        dict_set_text(entry, text_of(value));
        return true;
    }
    struct text number = text_of(value);
    uint64_t unit = 1;
    if (number.len > 2 && text_equal_nocase(text_skip(number, number.len - 2), TEXT("mb")))
        unit = 1024 * 1024;
    number.len -= unit > 1 ? 2 : 0;
    if (!text_to_u64(number, UINT64_MAX / unit, &bytes))
        return false;
    char storage[NUMBER_BYTES];
    dict_set_text(entry, number_print_i64(storage, (int64_t)(bytes * unit)));
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

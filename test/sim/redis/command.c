/* The table of commands, and whether one may run. */
#include "commands.h"
#include "internal.h"

#include <stdio.h>
#include <string.h>

static const struct command COMMANDS[] = {
#define COMMAND(name, arity, flags, function, first, last, step) {name, arity, flags, function, first, last, step},
#include "commands.def"
#undef COMMAND
};

const struct command *cmd_at(size_t index)
{
    return index < sizeof COMMANDS / sizeof *COMMANDS ? &COMMANDS[index] : NULL;
}

/* By name: a place in COMMANDS + 1; 0: empty. */
enum { SLOTS = 1024 };
_Static_assert(sizeof COMMANDS / sizeof *COMMANDS < SLOTS / 2, "half of the slots stay empty");
static uint16_t slots[SLOTS];
static bool has_slots;

static size_t slot_of(struct text name)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)text_lower(name.ptr[i])) * 16777619u;
    return (hash ^ hash >> 15) % SLOTS;
}

static void fill_slots(void)
{
    const struct command *command;

    for (size_t i = 0; (command = cmd_at(i)); i++) {
        size_t slot = slot_of(text_of(command->name));

        while (slots[slot] > 0)
            slot = (slot + 1) % SLOTS;
        slots[slot] = (uint16_t)(i + 1);
    }
    has_slots = true;
}

static const struct command *find(struct text name)
{
    if (!has_slots)
        fill_slots();
    for (size_t slot = slot_of(name); slots[slot] > 0; slot = (slot + 1) % SLOTS) {
        const struct command *command = &COMMANDS[slots[slot] - 1];

        if (text_equal_nocase(name, text_of(command->name)))
            return command;
    }
    return NULL;
}

const struct command *cmd_find(struct text name, struct text subcommand)
{
    const struct command *command = find(name), *inner = NULL;
    char whole[64];
    int len;

    if (!command || !(command->flags & CMD_CONTAINER) || !subcommand.ptr)
        return command;
    len = snprintf(whole, sizeof whole, "%.*s|%.*s", TEXT_ARG(name), TEXT_ARG(subcommand));
    if (len > 0 && (size_t)len < sizeof whole)
        inner = find(text_of(whole));
    return inner ? inner : command;
}

void cmd_unknown(struct call *call)
{
    char name[64];

    snprintf(name, sizeof name, "%s", call->command->name);
    for (char *at = name; *at; at++)
        *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    say_errorf(call, "ERR unknown subcommand '%.128s'. Try %s HELP.", call->argc > 1 ? call->argv[1].ptr : "", name);
}

/* With the arguments, as far as 128 bytes go. */
static void say_unknown(struct call *call)
{
    struct buf args = BUF_FIXED(512);

    if (call->server->in_script) {
        say_error(call, "ERR Unknown Redis command called from script");
        return;
    }
    for (size_t i = 1; i < call->argc && args.len < 128; i++)
        buf_printf(&args, "'%.*s' ", (int)(128 - args.len), call->argv[i].ptr);
    say_errorf(call, "ERR unknown command '%.128s', with args beginning with: %.*s", call->argv[0].ptr,
               TEXT_ARG(buf_text(&args)));
}

bool cmd_arity_fits(const struct call *call)
{
    size_t arity = (size_t)(call->command->arity < 0 ? -call->command->arity : call->command->arity);

    return call->command->arity < 0 ? call->argc >= arity : call->argc == arity;
}

static bool is_known(struct call *call)
{
    if (!call->command)
        say_unknown(call);
    else if ((call->command->flags & CMD_CONTAINER) && call->argc > 1)
        cmd_unknown(call);
    else if (!cmd_arity_fits(call) && call->server->in_script)
        say_error(call, "ERR Wrong number of args calling Redis command from script");
    else if (!cmd_arity_fits(call))
        say_errorf(call, "ERR wrong number of arguments for '%s' command", call->command->name);
    else
        return true;
    return false;
}

static bool script_may(struct call *call)
{
    static const char *const DENIED[] = {
        [ACL_NO_COMMAND] = "ERR The user executing the script can't run this command or subcommand",
        [ACL_NO_KEY] =
            "ERR The user executing the script can't access at least one of the keys mentioned in the command "
            "arguments",
        [ACL_NO_CHANNEL] = "ERR The user executing the script can't publish to the channel mentioned in the command"};
    unsigned flags = call->command->flags;
    size_t at;
    enum acl_verdict verdict = acl_judge(call->client->user, call, &at);

    if (flags & CMD_NO_SCRIPT)
        say_error(call, "ERR This Redis command is not allowed from script");
    else if (verdict != ACL_FINE)
        say_error(call, DENIED[verdict]);
    else if ((flags & (CMD_WRITE | CMD_MAY_REPLICATE)) && (call->server->script_flags & SCRIPT_NO_WRITES))
        say_error(call, "ERR Write commands are not allowed from read-only scripts.");
    else
        return true;
    return false;
}

bool memory_is_full(const struct simredis *server)
{
    uint64_t most = setting_number(server, "maxmemory");

    return most > 0 && sim_used_bytes(server) > most;
}

/* A script that says its flags is judged as a whole; one that says none, by each command until it has written. */
static bool has_memory(struct call *call)
{
    struct simredis *server = call->server;

    if (!(script_call_flags(call) & CMD_DENY_OOM) || server->is_loading ||
        (server->in_script && ((server->script_flags & SCRIPT_HAS_FLAGS) || server->has_script_written)) ||
        !memory_is_full(server))
        return true;
    say_error(call, "OOM command not allowed when used memory > 'maxmemory'.");
    return false;
}

static bool user_may(struct call *call)
{
    size_t at;
    enum acl_verdict verdict = acl_judge(call->client->user, call, &at);

    if (verdict == ACL_NO_COMMAND)
        say_errorf(call, "NOPERM this user has no permissions to run the '%s' command", call->command->name);
    else if (verdict != ACL_FINE)
        say_errorf(call, "NOPERM this user has no permissions to access one of the %ss used as arguments",
                   verdict == ACL_NO_KEY ? "key" : "channel");
    return verdict == ACL_FINE;
}

/* Redis does not ask for replicas again once a script has written. */
static bool replica_may(struct call *call)
{
    struct simredis *server = call->server;

    if (server->is_loading || !(script_call_flags(call) & CMD_WRITE))
        return true;
    if (server->master_host)
        say_error(call, "READONLY You can't write against a read only replica.");
    else if (!(server->in_script && server->has_script_written) && !replicas_suffice(server))
        say_error(call, "NOREPLICAS Not enough good replicas to write.");
    else
        return true;
    return false;
}

static bool has_logged_in(struct call *call)
{
    bool may = call->client->user || (call->command->flags & CMD_NO_AUTH);

    if (!may)
        say_error(call, "NOAUTH Authentication required.");
    return may && (!call->client->user || user_may(call));
}

static bool fits_subscriptions(struct call *call)
{
    if (client_subscriptions(call->client) == 0 || (call->command->flags & CMD_SUBSCRIBED))
        return true;
    say_errorf(
        call,
        "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
        "context",
        call->command->name);
    return false;
}

/* In Redis' order. */
bool cmd_may_run(struct call *call)
{
    if (!is_known(call))
        return false;
    if (call->server->in_script)
        return script_may(call) && replica_may(call) && has_memory(call) && cluster_may(call);
    return (!call->client || has_logged_in(call)) && cluster_may(call) && has_memory(call) && replica_may(call) &&
           (!call->client || fits_subscriptions(call));
}

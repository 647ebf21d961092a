/* Scripts: their cache, and how one is run. */
#include "commands.h"
#include "internal.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void script_name(char ret_name[41], struct text script)
{
    unsigned char digest[EVP_MAX_MD_SIZE];

    if (EVP_Digest(script.len > 0 ? script.ptr : "", script.len, digest, NULL, EVP_sha1(), NULL) != 1)
        abort();
    for (size_t i = 0; i < 20; i++)
        snprintf(ret_name + 2 * i, 3, "%02x", digest[i]);
}

/* The interpreter. Scripts see its globals through an empty table, which they cannot write. */

static int refuse_new(lua_State *lua)
{
    return luaL_error(lua, "Attempt to modify a readonly table");
}

static int find_global(lua_State *lua)
{
    lua_pushvalue(lua, 2);
    lua_rawget(lua, LUA_GLOBALSINDEX);
    if (lua_isnil(lua, -1))
        return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", lua_tostring(lua, 2));
    return 1;
}

static void open_library(lua_State *lua, lua_CFunction open, const char *name)
{
    lua_pushcfunction(lua, open);
    lua_pushstring(lua, name);
    lua_call(lua, 1, 0);
}

/* What redis.call() raises becomes a text here, as before Redis 7. */
static int call_protected(lua_State *lua)
{
    luaL_checkany(lua, 1);
    bool is_done = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0) == 0;

    if (!is_done && lua_istable(lua, -1)) {
        lua_getfield(lua, -1, "err");
        if (lua_isstring(lua, -1))
            lua_replace(lua, -2);
        else
            lua_pop(lua, 1);
    }
    lua_pushboolean(lua, is_done);
    lua_insert(lua, 1);
    return lua_gettop(lua);
}

/* Scripts see the table through an empty one, which they cannot write. */
static void protect(lua_State *lua, const char *name)
{
    lua_newtable(lua);
    lua_newtable(lua);
    lua_getglobal(lua, name);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_new);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, -2);
    lua_setglobal(lua, name);
}

/* Memory is little; what is not used any more is looked for once there is so much in percent of what was left. */
enum { PAUSE_PERCENT = 400 };

static lua_State *interpreter(struct simredis *server)
{
    static const char *const TABLES[] = {LUA_TABLIBNAME, LUA_STRLIBNAME, LUA_MATHLIBNAME, "struct", "redis"};
    static const char *const TAKEN[] = {"print",   "loadfile", "dofile", "newproxy",
                                        "getfenv", "setfenv",  "module", "require"};
    lua_State *lua = server->lua;

    if (lua)
        return lua;
    lua = server->lua = lua_begin();
    lua_gc(lua, LUA_GCSETPAUSE, PAUSE_PERCENT);
    open_library(lua, luaopen_base, "");
    open_library(lua, luaopen_table, LUA_TABLIBNAME);
    open_library(lua, luaopen_string, LUA_STRLIBNAME);
    open_library(lua, luaopen_math, LUA_MATHLIBNAME);
    for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++) {
        lua_pushnil(lua);
        lua_setglobal(lua, TAKEN[i]);
    }
    lua_pushcfunction(lua, call_protected);
    lua_setglobal(lua, "pcall");
    lua_open_struct(lua);
    lua_open_redis(lua, server);
    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES; i++)
        protect(lua, TABLES[i]);
    lua_newtable(lua); /* what scripts have as globals */
    lua_newtable(lua);
    lua_pushcfunction(lua, find_global);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_new);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, -2);
    lua_setfield(lua, LUA_REGISTRYINDEX, "environment");
    return lua;
}

void scripts_finish(struct simredis *server)
{
    if (server->lua)
        lua_end(server->lua);
    server->lua = NULL;
    dict_finish(&server->scripts);
}

/* The flags behind "flags=" in a first line that begins with "#!". False: the error is said. */
static bool read_flags(struct call *call, struct text line, unsigned *flags)
{
    static const struct {
        const char *word;
        unsigned flag;
    } FLAGS[] = {{"no-writes", SCRIPT_NO_WRITES},
                 {"allow-oom", SCRIPT_ALLOW_OOM},
                 {"allow-stale", SCRIPT_ALLOW_STALE},
                 {"no-cluster", SCRIPT_NO_CLUSTER},
                 {"allow-cross-slot-keys", SCRIPT_CROSS_SLOT}};
    struct text word = {0}, flag;
    size_t i;

    *flags = SCRIPT_HAS_FLAGS;
    if (!text_next(&line, ' ', &word) || !text_equal(word, TEXT("#!lua"))) {
        say_errorf(call, "ERR Unexpected engine in script shebang: %.*s", TEXT_ARG(word));
        return false;
    }
    while (text_next(&line, ' ', &word)) {
        if (!text_starts_with(word, TEXT("flags="))) {
            say_errorf(call, "ERR Unknown lua shebang option: %.*s", TEXT_ARG(word));
            return false;
        }
        word = text_skip(word, strlen("flags="));
        while (text_next(&word, ',', &flag)) {
            for (i = 0; i < sizeof FLAGS / sizeof *FLAGS && !text_equal(flag, text_of(FLAGS[i].word)); i++)
                ;
            if (i == sizeof FLAGS / sizeof *FLAGS) {
                say_errorf(call, "ERR Unexpected flag in script shebang: %.*s", TEXT_ARG(flag));
                return false;
            }
            *flags |= FLAGS[i].flag;
        }
    }
    return true;
}

static bool flags_of_script(struct call *call, struct text script, unsigned *flags, struct text *ret_body)
{
    const char *end = script.len > 0 ? memchr(script.ptr, '\n', script.len) : NULL;

    *flags = 0;
    *ret_body = script;
    if (!text_starts_with(script, TEXT("#!")))
        return true;
    if (!end) {
        say_error(call, "ERR Invalid script shebang");
        return false;
    }
    *ret_body = text_skip(script, (size_t)(end - script.ptr));
    return read_flags(call, (struct text){script.ptr, (size_t)(end - script.ptr)}, flags);
}

/* Compiles it if it is new. NULL: the error is said. */
static struct dict_entry *learn(struct call *call, struct text script)
{
    lua_State *lua = interpreter(call->server);
    struct text body;
    char name[41];
    unsigned flags;

    script_name(name, script);
    struct dict_entry *entry = dict_find(&call->server->scripts, text_of(name));
    if (entry)
        return entry;
    if (!flags_of_script(call, script, &flags, &body))
        return NULL;
    if (luaL_loadbuffer(lua, body.ptr, body.len, "@user_script") != 0) {
        say_errorf(call, "ERR Error compiling script (new function): %s", lua_tostring(lua, -1));
        lua_pop(lua, 1);
        return NULL;
    }
    lua_getfield(lua, LUA_REGISTRYINDEX, "environment");
    lua_setfenv(lua, -2);
    lua_setfield(lua, LUA_REGISTRYINDEX, name);
    entry = dict_add(&call->server->scripts, text_of(name), NULL);
    entry->score = flags;
    return entry;
}

static struct dict_entry *find_script(const struct call *call, bool by_name)
{
    char name[41];

    if (!by_name)
        script_name(name, call->argv[1]);
    for (size_t i = 0; by_name && i < 40 && call->argv[1].len == 40; i++)
        name[i] = text_lower(call->argv[1].ptr[i]);
    name[40] = '\0';
    return by_name && call->argv[1].len != 40 ? NULL : dict_find(&call->server->scripts, text_of(name));
}

/* Those in the script's first line; 0: it says none, or is not there. */
static unsigned flags_said(const struct call *call)
{
    bool by_name = call->command->run == cmd_evalsha;
    const struct dict_entry *entry = find_script(call, by_name);
    struct call silent = *call;
    struct buf out = BUF_UP_TO(1024);
    struct text body;
    unsigned flags = 0;

    silent.out = &out;
    if (entry)
        flags = (unsigned)entry->score;
    else if (!by_name && !flags_of_script(&silent, call->argv[1], &flags, &body))
        flags = 0;
    buf_finish(&out);
    return flags;
}

unsigned script_call_flags(const struct call *call)
{
    unsigned flags = call->command->flags, said;

    if (call->command->run != cmd_eval && call->command->run != cmd_evalsha)
        return flags;
    said = flags_said(call);
    if (!(said & SCRIPT_HAS_FLAGS))
        return flags;
    flags &= ~(unsigned)CMD_MAY_REPLICATE;
    if (said & SCRIPT_NO_WRITES)
        return flags;
    return flags | CMD_WRITE | (said & SCRIPT_ALLOW_OOM ? 0 : CMD_DENY_OOM);
}

/* Makes any error a table with what it says and where. */
static int on_error(lua_State *lua)
{
    lua_Debug where;
    bool is_known = lua_getstack(lua, 1, &where) && lua_getinfo(lua, "nSl", &where);

    if (is_known && strcmp(where.what, "C") == 0)
        is_known = lua_getstack(lua, 2, &where) && lua_getinfo(lua, "nSl", &where);
    if (!lua_istable(lua, 1)) {
        lua_newtable(lua);
        lua_pushfstring(lua, "ERR %s", lua_isstring(lua, 1) ? lua_tostring(lua, 1) : luaL_typename(lua, 1));
        lua_setfield(lua, -2, "err");
        lua_replace(lua, 1);
    }
    lua_settop(lua, 1);
    if (is_known) {
        lua_pushstring(lua, where.source);
        lua_setfield(lua, 1, "source");
        lua_pushinteger(lua, where.currentline);
        lua_setfield(lua, 1, "line");
    }
    return 1;
}

static const char *field_of(lua_State *lua, const char *name)
{
    const char *value;

    lua_getfield(lua, 1, name);
    value = lua_tostring(lua, -1);
    return value; /* the table has it, and the stack until the end */
}

static void say_failure(struct call *call, lua_State *lua, struct text name)
{
    const char *error, *source, *line;

    lua_replace(lua, 1);
    lua_settop(lua, 1);
    error = field_of(lua, "err");
    source = field_of(lua, "source");
    line = field_of(lua, "line");
    if (source && line)
        say_errorf(call, "%s script: %.*s, on %s:%s.", error ? error : "ERR unknown error", TEXT_ARG(name), source,
                   line);
    else
        say_errorf(call, "%s", error ? error : "ERR unknown error");
}

static void set_texts(lua_State *lua, const char *name, size_t count, const struct text *texts)
{
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(lua, texts[i].ptr, texts[i].len);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_setglobal(lua, name);
}

static void run_compiled(struct call *call, const struct dict_entry *entry, size_t keys)
{
    struct simredis *server = call->server;
    lua_State *lua = interpreter(server);

    lua_settop(lua, 0);
    lua_pushcfunction(lua, on_error);
    set_texts(lua, "KEYS", keys, call->argv + 3);
    set_texts(lua, "ARGV", call->argc - 3 - keys, call->argv + 3 + keys);
    lua_getfield(lua, LUA_REGISTRYINDEX, entry->key.ptr);
    server->script_call = call;
    server->script_flags = (unsigned)entry->score;
    server->in_script = true;
    server->has_script_written = false;
    int failure = lua_pcall(lua, 0, 1, 1);
    server->in_script = false;
    server->script_call = NULL;
    if (failure)
        say_failure(call, lua, entry->key);
    else
        lua_answer(call, lua);
    lua_settop(lua, 0);
}

static void run_script(struct call *call, bool by_name)
{
    struct dict_entry *entry;
    int64_t keys;

    if (by_name && call->argv[1].len != 40) {
        say_error(call, "NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    if (!arg_i64(call, 2, &keys))
        return;
    if (keys > (int64_t)call->argc - 3) {
        say_error(call, "ERR Number of keys can't be greater than number of args");
        return;
    }
    if (keys < 0) {
        say_error(call, "ERR Number of keys can't be negative");
        return;
    }
    entry = by_name ? find_script(call, true) : learn(call, call->argv[1]);
    if (!entry && by_name)
        say_error(call, "NOSCRIPT No matching script. Please use EVAL.");
    if (entry)
        run_compiled(call, entry, (size_t)keys);
}

void cmd_eval(struct call *call)
{
    run_script(call, false);
}

void cmd_evalsha(struct call *call)
{
    run_script(call, true);
}

void cmd_script_load(struct call *call)
{
    struct dict_entry *entry = learn(call, call->argv[2]);

    if (entry)
        say_text(call, entry->key);
}

void cmd_script_flush(struct call *call)
{
    if (call->argc > 2 && !(call->argc == 3 && (arg_is(call, 2, "SYNC") || arg_is(call, 2, "ASYNC")))) {
        say_error(call, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return;
    }
    scripts_finish(call->server);
    say_ok(call);
}

void cmd_script_exists(struct call *call)
{
    say_array(call, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        say_integer(call, dict_find(&call->server->scripts, call->argv[i]) != NULL);
}

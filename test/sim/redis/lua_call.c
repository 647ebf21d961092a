/* The table `redis` of scripts, and how replies become values of Lua and back. */
#include "internal.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>

/* Its address is the server's key in the registry. */
static char server_key;

static struct simredis *server_of(lua_State *lua)
{
    lua_pushlightuserdata(lua, &server_key);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    struct simredis *server = lua_touserdata(lua, -1);
    lua_pop(lua, 1);
    return server;
}

/* "-KIND words" or words, as the table of an error. */
static void push_error(lua_State *lua, const char *text, size_t len)
{
    bool has_kind = len > 0 && text[0] == '-';
    const char *rest = text + has_kind;

    len -= has_kind;
    lua_newtable(lua);
    if (has_kind && memchr(rest, ' ', len)) {
        lua_pushlstring(lua, rest, len);
    } else {
        lua_pushliteral(lua, "ERR ");
        lua_pushlstring(lua, rest, len);
        lua_concat(lua, 2);
    }
    lua_setfield(lua, -2, "err");
}

static int fail_with(lua_State *lua, const char *text, bool raises)
{
    push_error(lua, text, strlen(text));
    return raises ? lua_error(lua) : 1;
}

/* A length or count of our own, below which there is -1 alone. */
static long number_of(const char *line)
{
    long number = 0;

    if (*line == '-')
        return -1;
    for (; *line != '\r'; line++)
        number = 10 * number + *line - '0';
    return number;
}

const char *lua_push_reply(lua_State *lua, const char *at)
{
    const char *end = strchr(at, '\r'), *line = at + 1;
    long count = *at == '$' || *at == '*' ? number_of(line) : 0;

    switch (*at) {
    case ':':
        lua_pushnumber(lua, (lua_Number)strtoll(line, NULL, 10));
        return end + 2;
    case '+':
        lua_newtable(lua);
        lua_pushlstring(lua, line, (size_t)(end - line));
        lua_setfield(lua, -2, "ok");
        return end + 2;
    case '-':
        push_error(lua, at, (size_t)(end - at));
        return end + 2;
    case '$':
        if (count < 0)
            lua_pushboolean(lua, 0);
        else
            lua_pushlstring(lua, end + 2, (size_t)count);
        return end + 2 + (count < 0 ? 0 : count + 2);
    default:
        if (count < 0) {
            lua_pushboolean(lua, 0);
            return end + 2;
        }
        luaL_checkstack(lua, 4, "deep reply");
        lua_createtable(lua, (int)count, 0);
        at = end + 2;
        for (long i = 0; i < count; i++) {
            at = lua_push_reply(lua, at);
            lua_rawseti(lua, -2, (int)i + 1);
        }
        return at;
    }
}

/* The arguments, which stay on the stack; NULL: one is neither a text nor a number. The caller frees the array. */
static struct text *take_arguments(lua_State *lua, size_t argc)
{
    struct text *argv = mem_alloc(argc * sizeof *argv);
    char storage[NUMBER_BYTES];

    for (size_t i = 0; i < argc; i++) {
        int at = (int)i + 1;

        if (lua_type(lua, at) == LUA_TNUMBER) {
            struct text number = number_print_double(storage, lua_tonumber(lua, at));

            lua_pushlstring(lua, number.ptr, number.len);
            lua_replace(lua, at);
        } else if (lua_type(lua, at) != LUA_TSTRING) {
            free(argv);
            return NULL;
        }
        argv[i].ptr = lua_tolstring(lua, at, &argv[i].len);
    }
    return argv;
}

static int call_command(lua_State *lua, bool raises)
{
    struct simredis *server = server_of(lua);
    size_t argc = (size_t)lua_gettop(lua);
    struct text *argv;
    struct buf out;

    if (argc == 0)
        return fail_with(lua, "Please specify at least one argument for this redis.call() call", raises);
    argv = take_arguments(lua, argc);
    if (!argv)
        return fail_with(lua, "Lua redis lib command arguments must be strings or integers", raises);
    buf_init(&out, SIZE_MAX / 2);
    struct call call = {.server = server,
                        .client = server->script_call->client,
                        .command = cmd_find(argv[0], argc > 1 ? argv[1] : (struct text){0}),
                        .argv = argv,
                        .argc = argc,
                        .out = &out,
                        .db = server->script_call->db};
    sim_run_command(&call);
    buf_append_char(&out, '\0');
    bool is_error = out.ptr[0] == '-';
    lua_push_reply(lua, out.ptr);
    buf_finish(&out);
    free(argv);
    return is_error && raises ? lua_error(lua) : 1;
}

static int redis_call(lua_State *lua)
{
    return call_command(lua, true);
}

static int redis_pcall(lua_State *lua)
{
    return call_command(lua, false);
}

static int redis_sha1hex(lua_State *lua)
{
    struct text text = {0};
    char name[41];

    if (lua_gettop(lua) != 1)
        return fail_with(lua, "wrong number of arguments", true);
    text.ptr = lua_tolstring(lua, 1, &text.len);
    script_name(name, text);
    lua_pushstring(lua, name);
    return 1;
}

static int redis_error_reply(lua_State *lua)
{
    size_t len;

    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING)
        return fail_with(lua, "wrong number or type of arguments", false);
    const char *text = lua_tolstring(lua, 1, &len);
    if (text[0] != '-') {
        lua_pushliteral(lua, "-");
        lua_pushvalue(lua, 1);
        lua_concat(lua, 2);
        text = lua_tolstring(lua, -1, &len);
    }
    push_error(lua, text, len);
    return 1;
}

static int redis_status_reply(lua_State *lua)
{
    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING)
        return fail_with(lua, "wrong number or type of arguments", false);
    lua_newtable(lua);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "ok");
    return 1;
}

void lua_open_redis(lua_State *lua, struct simredis *server)
{
    static const luaL_Reg FUNCTIONS[] = {{"call", redis_call},
                                         {"pcall", redis_pcall},
                                         {"sha1hex", redis_sha1hex},
                                         {"error_reply", redis_error_reply},
                                         {"status_reply", redis_status_reply},
                                         {NULL, NULL}};

    lua_pushlightuserdata(lua, &server_key);
    lua_pushlightuserdata(lua, server);
    lua_rawset(lua, LUA_REGISTRYINDEX);
    lua_newtable(lua);
    for (const luaL_Reg *row = FUNCTIONS; row->name; row++) {
        lua_pushcfunction(lua, row->func);
        lua_setfield(lua, -2, row->name);
    }
    lua_setglobal(lua, "redis");
    /* Redis takes it from the system's time. */
    lua_getglobal(lua, "math");
    lua_pushnil(lua);
    lua_setfield(lua, -2, "random");
    lua_pop(lua, 1);
}

/* The text of a field of the table on top, which stays on the stack; false: there is none, and nothing stays. */
static bool push_field(lua_State *lua, const char *name, struct text *ret_text)
{
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    if (lua_type(lua, -1) == LUA_TSTRING) {
        ret_text->ptr = lua_tolstring(lua, -1, &ret_text->len);
        return true;
    }
    lua_pop(lua, 1);
    return false;
}

static void answer_table(struct call *call, lua_State *lua)
{
    struct text text = {0};
    int count = 0;

    if (push_field(lua, "err", &text)) {
        say_errorf(call, "%.*s", TEXT_ARG(text));
        lua_pop(lua, 2);
        return;
    }
    if (push_field(lua, "ok", &text)) {
        say_status(call, text.ptr);
        lua_pop(lua, 2);
        return;
    }
    for (lua_rawgeti(lua, -1, 1); !lua_isnil(lua, -1); lua_rawgeti(lua, -1, count + 1)) {
        lua_pop(lua, 1);
        count++;
    }
    lua_pop(lua, 1);
    say_array(call, (size_t)count);
    luaL_checkstack(lua, 4, "deep reply");
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(lua, -1, i);
        lua_answer(call, lua);
    }
    lua_pop(lua, 1);
}

void lua_answer(struct call *call, lua_State *lua)
{
    struct text text = {0};

    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        text.ptr = lua_tolstring(lua, -1, &text.len);
        say_text(call, text);
        break;
    case LUA_TNUMBER:
        say_integer(call, (int64_t)lua_tonumber(lua, -1));
        break;
    case LUA_TTABLE:
        answer_table(call, lua);
        return;
    case LUA_TBOOLEAN:
        if (lua_toboolean(lua, -1))
            say_integer(call, 1);
        else
            say_nil(call);
        break;
    default:
        say_nil(call);
    }
    lua_pop(lua, 1);
}

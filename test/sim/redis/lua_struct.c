/* The table `struct` of scripts: whole numbers of 1 to 8 bytes, in either order, and texts of a fixed length. */
#include "internal.h"

#include <lauxlib.h>
#include <lua.h>

struct format {
    const char *at;
    bool is_big;
    char kind; /* 'I', 'i' or 'c' */
    size_t bytes;
};

/* The digits behind an option. */
static size_t size_of(struct format *format, size_t usual)
{
    size_t size = text_is_digit(*format->at) ? 0 : usual;

    for (; text_is_digit(*format->at) && size < 100000; format->at++)
        size = 10 * size + (size_t)(*format->at - '0');
    return size;
}

/* False: the format is at its end. */
static bool next_item(lua_State *lua, struct format *format)
{
    for (;; format->at++) {
        if (*format->at == '<' || *format->at == '>')
            format->is_big = *format->at == '>';
        else if (*format->at != ' ')
            break;
    }
    if (*format->at == '\0')
        return false;
    format->kind = *format->at++;
    if (format->kind == 'B' || format->kind == 'b') {
        format->bytes = 1;
        format->kind = format->kind == 'B' ? 'I' : 'i';
    } else if (format->kind == 'c') {
        format->bytes = size_of(format, 1);
    } else if (format->kind == 'I' || format->kind == 'i') {
        format->bytes = size_of(format, 4);
        luaL_argcheck(lua, format->bytes >= 1 && format->bytes <= 8, 1, "size of a number");
    } else {
        luaL_error(lua, "invalid format option '%c'", format->kind);
    }
    return true;
}

static size_t place_of(const struct format *format, size_t byte)
{
    return format->is_big ? format->bytes - 1 - byte : byte;
}

/* "c0": all of it. */
static void add_text(lua_State *lua, luaL_Buffer *out, const struct format *format, int argument)
{
    size_t len;
    const char *text = luaL_checklstring(lua, argument, &len);

    luaL_argcheck(lua, len >= format->bytes, argument + 1, "string too short"); /* as there */
    luaL_addlstring(out, text, format->bytes > 0 ? format->bytes : len);
}

static int struct_pack(lua_State *lua)
{
    struct format format = {.at = luaL_checkstring(lua, 1)};
    luaL_Buffer out;
    int argument = 2;

    luaL_buffinit(lua, &out);
    while (next_item(lua, &format)) {
        if (format.kind == 'c') {
            add_text(lua, &out, &format, argument++);
            continue;
        }
        lua_Number number = luaL_checknumber(lua, argument++);
        uint64_t value = number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
        char bytes[8];

        for (size_t i = 0; i < format.bytes; i++)
            bytes[place_of(&format, i)] = (char)(value >> (8 * i) & 0xff);
        luaL_addlstring(&out, bytes, format.bytes);
    }
    luaL_pushresult(&out);
    return 1;
}

static int64_t with_sign(uint64_t value, size_t bytes)
{
    uint64_t sign = bytes > 0 && bytes <= 8 ? UINT64_C(1) << (8 * bytes - 1) : 0;

    return (int64_t)((value ^ sign) - sign);
}

static int struct_unpack(lua_State *lua)
{
    struct format format = {.at = luaL_checkstring(lua, 1)};
    size_t len, at = (size_t)luaL_optinteger(lua, 3, 1) - 1;
    const char *data = luaL_checklstring(lua, 2, &len);
    int count = 0;

    while (next_item(lua, &format)) {
        uint64_t value = 0;

        luaL_argcheck(lua, at <= len && format.bytes <= len - at, 2, "data string too short");
        luaL_checkstack(lua, 2, "too many results");
        count++;
        at += format.bytes;
        if (format.kind == 'c') {
            lua_pushlstring(lua, data + at - format.bytes, format.bytes);
            continue;
        }
        for (size_t i = 0; i < format.bytes; i++)
            value |= (uint64_t)(unsigned char)data[at - format.bytes + place_of(&format, i)] << (8 * i);
        if (format.kind == 'i')
            lua_pushnumber(lua, (lua_Number)with_sign(value, format.bytes));
        else
            lua_pushnumber(lua, (lua_Number)value);
    }
    lua_pushinteger(lua, (lua_Integer)at + 1);
    return count + 1;
}

void lua_open_struct(lua_State *lua)
{
    lua_newtable(lua);
    lua_pushcfunction(lua, struct_pack);
    lua_setfield(lua, -2, "pack");
    lua_pushcfunction(lua, struct_unpack);
    lua_setfield(lua, -2, "unpack");
    lua_setglobal(lua, "struct");
}

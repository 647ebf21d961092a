/* The embedded Lua scripts: SCRIPT_<file name>. Each text includes what it needs of the prelude, and epilogue.lua.
 * src/engine/lua/embed.c writes the table and the names. */
#pragma once
#include "base/text.h"
#include "engine/lua_script_names.h"

struct lua_script {
    const char *name;
    struct text body;
    /* Arguments behind the prefix: from least to most, which is SIZE_MAX for a list, in steps of `each`. */
    size_t least, most, each;
};

extern const struct lua_script LUA_SCRIPTS[SCRIPT_COUNT];

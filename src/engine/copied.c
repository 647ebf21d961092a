#include "engine/copied.h"
#include "engine/lua_scripts.h"

struct text store_leave_script(void)
{
    return LUA_SCRIPTS[SCRIPT_store_leave].body;
}

struct text store_return_script(void)
{
    return LUA_SCRIPTS[SCRIPT_store_return].body;
}

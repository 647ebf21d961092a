/* The embedded Lua scripts: SCRIPT_<file name>. Each text includes prelude.lua and epilogue.lua. */
#pragma once
#include "base/text.h"

enum script {
    SCRIPT_schema_claim,
    SCRIPT_master_keys,
    SCRIPT_master_key_note,
    SCRIPT_key_walk,
    SCRIPT_record_seal,
    SCRIPT_key_insert,
    SCRIPT_key_get,
    SCRIPT_key_list,
    SCRIPT_key_revoke,
    SCRIPT_key_show,
    SCRIPT_account_create,
    SCRIPT_account_list,
    SCRIPT_account_find,
    SCRIPT_account_suspend,
    SCRIPT_account_suspend_again,
    SCRIPT_account_resume,
    SCRIPT_account_close_keys,
    SCRIPT_account_close_people,
    SCRIPT_account_close,
    SCRIPT_user_create,
    SCRIPT_user_find,
    SCRIPT_user_reset,
    SCRIPT_user_unlock,
    SCRIPT_user_list,
    SCRIPT_login_begin,
    SCRIPT_login_fail,
    SCRIPT_login_give_back,
    SCRIPT_session_create,
    SCRIPT_session_load,
    SCRIPT_session_step_up,
    SCRIPT_session_end,
    SCRIPT_session_list,
    SCRIPT_session_stop,
    SCRIPT_device_begin,
    SCRIPT_device_poll,
    SCRIPT_device_claim,
    SCRIPT_device_find,
    SCRIPT_device_decide,
    SCRIPT_audit_follow,
    SCRIPT_audit_search,
    SCRIPT_audit_logged,
    SCRIPT_audit_unlogged,
    SCRIPT_audit_heads,
    SCRIPT_usage_flush,
    SCRIPT_usage_read,
    SCRIPT_node_heartbeat,
    SCRIPT_node_leave,
    SCRIPT_node_settle,
    SCRIPT_node_report,
    SCRIPT_node_list,
    SCRIPT_store_accept_loss,
    SCRIPT_store_durability,
    SCRIPT_store_upgrade,
    SCRIPT_COUNT
};

struct lua_script {
    const char *name;
    struct text body;
};

extern const struct lua_script LUA_SCRIPTS[SCRIPT_COUNT];

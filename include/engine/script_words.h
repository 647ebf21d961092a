/* The words by which scripts and Redis say what became of a call. */
#pragma once
#include "base/attr.h"
#include "base/text.h"
#include "engine/lua_scripts.h"
#include "engine/types.h"

/* Whether the changes that a script makes end something (lease/chains.h). */
bool script_ends(enum script script);

/* The result that a script names by this word. */
MUST_CHECK bool script_result_read(struct text word, enum store_result *ret_result);

/* Error replies that mean that Redis accepts no writes, and that the script has done nothing. */
struct script_refusal {
    struct text kind;
    const char *reason;
    bool is_full;      /* except from scripts with allow-oom */
    bool is_of_rights; /* of this script; others may still run */
};
/* NULL: it is another error. */
const struct script_refusal *script_refusal_of(struct text kind);

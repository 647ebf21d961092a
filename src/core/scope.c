#include "core/scope.h"
#include "base/check.h"

static const struct text NAMES[SCOPE_COUNT] = {
    {"exchanges:read", 14},  {"exchanges:write", 15}, {"patients:read", 13},   {"patients:write", 14},
    {"webhooks:manage", 15}, {"keys:manage", 11},     {"audit:read", 10},      {"team:manage", 11},
    {"org:manage", 10},      {"usage:read", 10},      {"documents:write", 15}, {"sandbox:manage", 14},
};

scope_set scope_parse(struct text name)
{
    for (unsigned n = 0; n < SCOPE_COUNT; n++)
        if (text_equal(name, NAMES[n]))
            return (scope_set)1 << n;
    return SCOPE_NONE;
}

struct text scope_name(unsigned n)
{
    CHECK(n < SCOPE_COUNT);
    return NAMES[n];
}

void scope_print(scope_set scopes, char separator, struct buf *out)
{
    bool first = true;
    for (scope_set rest = scopes & SCOPE_ALL; rest; rest &= rest - 1) {
        if (!first)
            buf_append_char(out, separator);
        buf_append_text(out, scope_name((unsigned)__builtin_ctz(rest)));
        first = false;
    }
}

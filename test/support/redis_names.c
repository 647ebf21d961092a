#include "redis_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ARGV: the prefix, then the table's lines. A name's <...> stands for anything; of several that fit, the longest
 * counts. A row that lasts "as ..." says nothing about a time to live. If what a row grows with begins with a number,
 * or "at most" and one, no set, list or stream of that name has more; Redis trims streams by the hundred. Returns what
 * is wrong, or nothing. */
static const char JUDGE[] =
    "#!lua flags=no-writes,allow-oom,allow-stale,allow-cross-slot-keys\n"
    "local rows = {} "
    "for i = 2, #ARGV do "
    "    local names, lasts, grows = ARGV[i]:match('^| (.-) | .* | (.-) | (.-) |$') "
    "    local most = (grows or ''):gsub('^at most ', ''):match('^[%d,]+') "
    "    for name in (names or ''):gmatch('`([^`]+)`') do "
    "        local form = name:gsub('<.->', '\1'):gsub('%p', '%%%0'):gsub('\1', '.+') "
    "        rows[#rows + 1] = {form = '^' .. form .. '$', lasts = lasts, len = #name, most = most} "
    "    end "
    "end "
    "table.sort(rows, function(a, b) return a.len > b.len end) "
    "local function row_of(name) "
    "    for _, row in ipairs(rows) do if name:find(row.form) then return row end end "
    "end "
    "local COUNTS = {zset = 'ZCARD', set = 'SCARD', list = 'LLEN', stream = 'XLEN'} "
    "for _, name in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do "
    "    local row = row_of((name:sub(#ARGV[1] + 1):gsub('^{%d+}:', ''))) "
    "    if not row then return name .. ' is not in the table' end "
    "    local ttl, has = redis.call('PTTL', name), row.lasts:sub(1, 3) == 'TTL' "
    "    if row.lasts:sub(1, 3) ~= 'as ' and ttl ~= -2 and (ttl >= 0) ~= has then "
    "        return name .. ' has ' .. (has and 'no' or 'a') .. ' time to live, but lasts: ' .. row.lasts "
    "    end "
    "    local type = redis.call('TYPE', name).ok "
    "    local count = row.most and COUNTS[type] and redis.call(COUNTS[type], name) or 0 "
    "    if count > tonumber(((row.most or '0'):gsub(',', ''))) + (type == 'stream' and 100 or 0) then "
    "        return name .. ' has ' .. count .. ' of ' .. row.most "
    "    end "
    "end "
    "return ''";

enum { ROWS_MAX = 120, REPLY_BYTES = 400 };

static char *table_text(void)
{
    char path[PROCESS_PATH_BYTES];

    snprintf(path, sizeof path, "%s/src/engine/README.md", getenv("CHATELAINE_SOURCE"));
    return file_read(path);
}

void redis_names_judge(const struct redis_server *server, const char *prefix)
{
    const char *argv[ROWS_MAX + 4] = {"EVAL", JUDGE, "0", prefix};
    char *text = table_text(), *rest = strstr(text, "\n| name | type |"), *line, reply[REPLY_BYTES];
    size_t argc = 4;

    if (!rest)
        test_give_up("src/engine/README.md has no table of names");
    rest++;
    while ((line = strsep(&rest, "\n")) && line[0] == '|') {
        if (argc == ROWS_MAX + 4)
            test_give_up("more than %d rows", ROWS_MAX);
        argv[argc++] = line;
    }
    for (; server; server = server->next)
        if (redis_server_try(server, reply, sizeof reply, argc, argv) && reply[0])
            test_give_up("in Redis: %s", reply);
    free(text);
}

-- How the canary stands, for 'chatelaine status' and the console.
-- ARGV: prefix
-- Returns: not_found: no node has run it. ok, {name, value, ...} of what it has: of its hash, and ms since the last
--   finished run, the last unfinished one, and the last violation

local now, canary = now_ms(), hash_read(K.canary())

local function since(field)
    return canary[field] and math.max(0, now - tonumber(canary[field]))
end

if not canary.started then
    return {'not_found'}
end
local reply = record_add({}, {'since_finished', 'since_unfinished', 'since_violated'},
                         {since('finished'), since('unfinished_at'), since('violated')})
for _, field in ipairs({'interval', 'finished_runs', 'finished_by', 'finished_us', 'refused', 'accepted', 'silent',
                        'slowest', 'slowest_ms', 'unfinished', 'unfinished_why', 'violations', 'violated_by'}) do
    record_add(reply, {field}, {canary[field]})
end
return {'ok', reply}

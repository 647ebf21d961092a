#!lua flags=allow-oom
-- Lowers lease_max, the longest lease that revocations wait for. Called twice. The first call marks the entries of members
-- with a longer lease, unless somebody has. Then the caller waits for lease_max, as a revocation does, and removes those that
-- are still marked (node_leave.lua). The second call lowers if no longer lease is registered, or only those as the first call
-- left them: no heartbeat of theirs has come since, so their leases have expired. A heartbeat that comes later raises
-- lease_max again, before its lease is granted.
-- ARGV: prefix, lease_ms, mark (that nobody else gives), #waited (the lease_max that was waited for; -1: the first
--   call), actor, left (digest of what the first call left)
-- Returns: ok, lease_max before, as it is; of the first call: registry (member, what it holds, ...) of those with a longer
--   lease, its digest; of the second: whether something was in the way (1 or 0), how many with a longer lease live, the longest
--   of these
-- Event, of the whole store: store.lease_lowered

local EVENTS_KEPT = 10000

local lease = tonumber(lease_ms)
local is_first = waited < 0
local kept = redis.call('GET', K.lease_max()) or '0'
local longest = kept:match('^%d+$') and tonumber(kept)
if not longest or longest <= lease then
    return {'ok', kept, is_first and {} or 0, is_first and '' or 0, 0}
end

-- What the registry holds for members with a longer lease, in the order of their names.
local registry, members, entries = redis.call('HGETALL', K.nodes()), {}, {}
local living, of_living = 0, 0
for i = 1, #registry, 2 do
    local member, held = registry[i], registry[i + 1]
    local by, theirs = held:match('^(%S*) ?(%d*)')
    theirs = tonumber(theirs) or longest
    if theirs > lease then
        local is_marked = by:sub(1, 1) == '?'
        if is_first and not is_marked then
            held = mark .. held:sub(#by + 1)
            redis.call('HSET', K.nodes(), member, held)
        elseif not is_marked then
            living, of_living = living + 1, math.max(of_living, theirs)
        end
        members[#members + 1] = member
        entries[member] = held
    end
end
table.sort(members)
local longer = {}
for _, member in ipairs(members) do
    longer[#longer + 1] = member
    longer[#longer + 1] = entries[member]
end
local digest = redis.sha1hex(table.concat(longer, '\n'))
if is_first then
    return {'ok', longest, longer, digest}
end
if longest > waited or #longer > 0 and digest ~= left then
    return {'ok', longest, 1, living, of_living}
end
for _, member in ipairs(members) do
    redis.call('HDEL', K.nodes(), member)
    redis.call('HDEL', K.tellers(), member)
end
redis.call('SET', K.lease_max(), lease_ms)
audit_in(K.store_audit(), EVENTS_KEPT, '', 'people',
         {'type', 'store.lease_lowered', 'actor', actor, 'target', redis.call('HGET', K.store(), 'id') or '', 'ip', '',
          'request_id', '', 'data:from_ms', string.format('%.0f', longest), 'data:to_ms', lease_ms})
return {'ok', longest, 0, 0, 0}

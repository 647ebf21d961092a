#!lua flags=allow-oom
-- A node that has come to this Redis looks what it holds, and whether all members have told what they know
-- (src/lease/README.md, rule 13). An era is one history of one Redis process: a replica that takes over begins another
-- one, and so does a restart. Whoever comes first notes it.
-- ARGV: prefix, run id of this Redis, the node's membership ('' for none), the one before, whether it has told all that it
--   knows (1 or 0), whether chains are wanted (1 or 0)
-- Returns: ok, era, how often losses were accepted, how many endings are missing, how many members have not told yet,
--   {maker, its numbers}...

-- Redis' user may not be allowed to ask; then the era is that of the process.
local function era_now()
    local info = redis.pcall('INFO', 'replication')
    return ARGV[2] .. ':' .. (type(info) == 'string' and info:match('master_replid:(%x+)') or '')
end

local era = era_now()
local there = redis.call('HMGET', K.store(), 'era', 'losses_accepted', 'missing')
if there[1] ~= era then
    redis.call('HSET', K.store(), 'era', era)
    redis.call('DEL', K.tellers())
end
local own = {[ARGV[3]] = true, [ARGV[4]] = true}
if ARGV[5] == '1' then
    for member in pairs(own) do
        if member ~= '' then
            redis.call('HSET', K.tellers(), member, era)
        end
    end
end
local nodes, waiting = redis.call('HGETALL', K.nodes()), 0
for i = 1, #nodes, 2 do
    local tells = tonumber(nodes[i + 1]:match('^%S+ %d+ (%d+)$') or '1') >= READS_ENDINGS
    if tells and not own[nodes[i]] and redis.call('HGET', K.tellers(), nodes[i]) ~= era then
        waiting = waiting + 1
    end
end
local reply = {'ok', era, tonumber(there[2] or '0'), tonumber(there[3] or '0'), waiting}
local chains = ARGV[6] == '1' and redis.call('HGETALL', K.chains()) or {}
for i = 1, #chains, 2 do
    reply[#reply + 1] = {chains[i], chains[i + 1]}
end
return reply

#!lua flags=allow-oom
-- A node that has come to this Redis looks what it holds, and whether all members have told what they know
-- (src/lease/README.md, rule 13). An era is one history of one Redis process: a replica that takes over begins another
-- one, and so does a restart, or a slot that comes back. Whoever comes first gives it a name.
-- ARGV: prefix, run_id (of this Redis), era_name (a random one), own_name (the node's membership; '' for none),
--   former_name (the one before), told_era (in which the node has told all that it knows; '' for none), waits_no_longer
--   (for those that have not come, 1 or 0), #ever_joined (how many members, as far as it knows)
-- Returns: ok, era, whether an operator has accepted losses in it (1 or 0), how many endings are missing, how many members
--   have not come, how many have come and not told all yet, and unless it has told: {maker, its numbers}...

-- Redis' user may not be allowed to ask; then it is that of the process.
local function history()
    local info = redis.pcall('INFO', 'replication')
    return run_id .. ':' .. (type(info) == 'string' and info:match('master_replid:(%x+)') or '')
end

-- Whoever did not come in an earlier era is not waited for again, until it comes.
local function era_begin(era, joined)
    redis.call('HSET', K.store(), 'era', era, 'era_joined', joined)
    local tellers = redis.call('HGETALL', K.tellers())
    for i = 1, #tellers, 2 do
        if tellers[i + 1] ~= 'gone' then
            redis.call('HDEL', K.tellers(), tellers[i])
        end
    end
end

local there, here = redis.call('HMGET', K.store(), 'era', 'accepted_era', 'missing', 'joined', 'era_joined'), history()
local joined = tonumber(there[5] or '0')
local era = there[1]
if not era or era:match('^(.*):%x+$') ~= here then
    era, joined = here .. ':' .. era_name, tonumber(there[4] or '0')
    era_begin(era, joined)
end
local own, has_told, gives_up = {[own_name] = true, [former_name] = true}, told_era == era, waits_no_longer == '1'
for member in pairs(own) do
    if member ~= '' and redis.call('HGET', K.tellers(), member) ~= era then
        redis.call('HSET', K.tellers(), member, has_told and era or 'come ' .. era)
    end
end
-- Members joined that this Redis did not know of when the era began: it cannot say who they are.
local absent, telling = ever_joined > joined and 1 or 0, 0
local nodes = redis.call('HGETALL', K.nodes())
for i = 1, #nodes, 2 do
    local tells = tonumber(nodes[i + 1]:match('^%S+ %d+ (%d+)$') or '1') >= READS_ENDINGS
    local told = redis.call('HGET', K.tellers(), nodes[i])
    local is_awaited = tells and not own[nodes[i]] and told ~= era and told ~= 'gone'
    if is_awaited and told == 'come ' .. era then
        telling = telling + 1
    elseif is_awaited then
        absent = absent + 1
        if gives_up then
            redis.call('HSET', K.tellers(), nodes[i], 'gone')
        end
    end
end
local reply = {'ok', era, there[2] == era and 1 or 0, tonumber(there[3] or '0'), absent, telling}
local chains = has_told and {} or redis.call('HGETALL', K.chains())
for i = 1, #chains, 2 do
    reply[#reply + 1] = {chains[i], chains[i + 1]}
end
return reply

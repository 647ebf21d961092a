#!lua flags=allow-oom
-- One heartbeat of a member: registers it, and echoes the nonce on the member's own channel, behind every invalidation
-- published before. The entry is written only if it is not there or somebody has marked it (node_leave.lua), or if the
-- member has changed the number. It says what the member reads. Revokers compute their wait from lease_max. It only grows
-- (only store_lower_lease.lua lowers it), because a lease granted before a restart may still be valid. Heartbeats also keep
-- the store's time (store_times() in the prelude).
-- ARGV: prefix, member, number, lease_ms, nonce, measured, said (what the member was told of the time), #chains_known
--   (up to which count of changes it knows all chains), told_era (in which it has told all that it knows)
-- measured: '<from> <to> <least> <most>' (or '0': nothing): Redis' clock is between from and to by now, unless it was
--   set since, and the time was least to most ms ahead of it. said: '<settlement> <why>': why is 'fresh' (lately), `time`
--   as it was kept while the member waited for others that know more, or '-'.
-- Returns: ok, the store's time (keep_time()), whether scheduled revocations are due (1 or 0), the last entry in the stream
--   of invalidations ('0-0': it is empty; '': it is not complete, because nodes of earlier versions may revoke), how many
--   members ever joined, up to which count of changes these are all chains: {maker, its numbers}...; missing, how many
--   endings

-- Writes no more often than that, however many members there are.
local KEPT_EVERY_MS = 200

-- While nothing is scheduled, nothing depends on the time: it is Redis' clock, whatever that was before.
local function time_forget(first, last, clock, seen, settlement)
    if first ~= clock or last ~= clock or seen > clock then
        settlement = nonce
        redis.call('HDEL', K.store(), 'time', 'ahead', 'unsure')
        redis.call('HSET', K.store(), 'settlement', settlement)
    end
    return {clock, clock, clock, 0, settlement, 2}, clock
end

-- Only a member that was told lately says what the time is, or one that knows less but has seen for a while that no
-- other keeps it: so nobody who has just started takes a clock's word against others. It says what it has measured in the
-- heartbeat before: how long this one was on its way nobody knows. If the clock is not where it was then, it was set since,
-- or this one was long on its way. Then nothing changes before the member has measured again; only the least that it knows
-- is kept. Returns {the first that the time can be, the last, Redis' clock, `time`, `settlement`, 2: nothing depends on it,
-- 1: this member says what it is, or 0}, and by when what is due has surely ended.
local function keep_time()
    local first, last, clock, seen, settlement = store_times()
    if not exists(K.key_ends()) then
        return time_forget(first, last, clock, seen, settlement)
    end
    local told, why = said:match('^(%S+) (%S+)$')
    local from, to, least, most = measured:match('^(%d+) (%d+) (-?%d+) (-?%d+)$')
    local was_set = from and (clock < tonumber(from) or clock > tonumber(to))
    if not from or told ~= settlement or why ~= 'fresh' and why ~= string.format('%.0f', seen)
        or not was_set and clock + most < seen then
        return {first, last, clock, seen, settlement, 0}, seen
    end
    local ahead, unsure = first - clock, last - first
    local reached
    if was_set then
        reached = math.max(seen, from + least)
    else
        least, most = math.max(clock + least, seen), clock + most
        if least <= last and most >= first then
            least, most = math.max(least, first), math.min(most, last)
        end
        first, last, reached = least, most, least
    end
    if first - clock ~= ahead or last - first ~= unsure or reached - seen >= KEPT_EVERY_MS then
        seen = reached
        redis.call('HSET', K.store(), 'time', string.format('%.0f', seen), 'ahead', string.format('%.0f', first - clock),
                   'unsure', string.format('%.0f', last - first))
    end
    return {first, last, clock, seen, settlement, 1}, reached
end

local CHAINS_MAX = 200

-- What has changed since the member heard of it.
local function chains_since(count, since)
    local makers = count ~= since and redis.call('ZRANGE', K.chain_order(), '(' .. (count < since and 0 or since), '+inf',
                                                 'BYSCORE', 'LIMIT', 0, CHAINS_MAX, 'WITHSCORES') or {}
    local chains, upto = {}, count
    for i = 1, #makers, 2 do
        chains[#chains + 1] = {makers[i], redis.call('HGET', K.chains(), makers[i]) or ''}
        upto = #makers == 2 * CHAINS_MAX and tonumber(makers[i + 1]) or count
    end
    return upto, chains
end

local of_store = redis.call('HMGET', K.store(), 'missing', 'changes', 'era', 'joined')
if of_store[1] then
    return {'missing', tonumber(of_store[1])}
end
local lease = tonumber(lease_ms)
local entry = number .. ' ' .. lease_ms .. ' ' .. READS_ENDINGS
local before = redis.call('HGET', K.nodes(), member)
if before ~= entry then
    redis.call('HSET', K.nodes(), member, entry)
end
local joined = tonumber(of_store[4] or '0')
if not before then
    joined = redis.call('HINCRBY', K.store(), 'joined', 1)
    if of_store[3] == told_era then
        redis.call('HSET', K.tellers(), member, told_era)
    end
end
local held = redis.call('MGET', K.lease_max(), K.schema())
if lease > tonumber(held[1] or '0') then
    redis.call('SET', K.lease_max(), lease)
end
local time, due_by = keep_time()
redis.call(PUBLISH, K.node(member), 'lease ' .. nonce)
local upto, chains = chains_since(tonumber(of_store[2] or '0'), chains_known)
return {'ok', time, redis.call('ZCOUNT', K.key_ends(), '-inf', due_by) > 0 and 1 or 0,
        schema_knows_suspensions(held[2]) and invalidations_last() or '', joined, upto,
        unpack(chains)}

#!lua flags=allow-oom
-- One heartbeat of a member: registers it, and echoes the nonce on the member's own channel, behind every invalidation
-- published before. The entry is written only if it is not there or somebody has marked it (node_leave.lua), or if the
-- member has changed the number. It says what the member reads. Revokers compute their wait from lease_max. It only grows,
-- because a lease granted before a restart may still be valid. Heartbeats also keep the store's time (store_ms() in the
-- prelude).
-- ARGV: prefix, member, number, lease in ms, nonce, the store's time in ms at least and at most, by the
--   member's clock and what it was told last (0: it was told nothing), up to which count of changes it knows all chains,
--   the era in which it has told all that it knows
-- Returns: ok, the store's time in ms, whether scheduled revocations are due (1 or 0), the last entry in the stream of
--   invalidations ('0-0': it is empty; '': it is not complete, because nodes of earlier versions may revoke), how many
--   members ever joined, up to which count of changes these are all chains: {maker, its numbers}...; missing, how many
--   endings

-- Writes no more often than that, however many members there are.
local KEPT_EVERY_MS = 200

-- If the clock went back, time goes on from what the member knows: it may be ahead then, but is never behind. While that
-- is so, or a revocation is scheduled, the time is kept. Otherwise nothing depends on it, and whoever schedules the first
-- one keeps it (key_end_at() in the prelude).
local function keep_time(least, most)
    local kept = redis.call('HMGET', K.store(), 'time', 'ahead')
    local seen, ahead, clock = tonumber(kept[1] or '0'), tonumber(kept[2] or '0'), now_ms()
    local floor, before = math.max(seen, least), ahead
    if clock >= floor then
        ahead = 0
    elseif clock + ahead < floor then
        ahead = math.max(seen, most) - clock
    end
    local now = clock + ahead
    if ahead ~= before or now - seen >= KEPT_EVERY_MS and (ahead > 0 or exists(K.key_ends())) then
        redis.call('HSET', K.store(), 'time', string.format('%.0f', now), 'ahead', string.format('%.0f', ahead))
    end
    return now
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
local lease = tonumber(ARGV[4])
local entry = ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. READS_ENDINGS
local before = redis.call('HGET', K.nodes(), ARGV[2])
if before ~= entry then
    redis.call('HSET', K.nodes(), ARGV[2], entry)
end
local joined = tonumber(of_store[4] or '0')
if not before then
    joined = redis.call('HINCRBY', K.store(), 'joined', 1)
    if of_store[3] == ARGV[9] then
        redis.call('HSET', K.tellers(), ARGV[2], ARGV[9])
    end
end
local held = redis.call('MGET', K.lease_max(), K.schema())
if lease > tonumber(held[1] or '0') then
    redis.call('SET', K.lease_max(), lease)
end
local now = keep_time(tonumber(ARGV[6]), tonumber(ARGV[7]))
redis.call(PUBLISH, K.node(ARGV[2]), 'lease ' .. ARGV[5])
local upto, chains = chains_since(tonumber(of_store[2] or '0'), tonumber(ARGV[8]))
return {'ok', now, redis.call('ZCOUNT', K.key_ends(), '-inf', now) > 0 and 1 or 0,
        schema_knows_suspensions(held[2]) and invalidations_last() or '', joined, upto,
        unpack(chains)}

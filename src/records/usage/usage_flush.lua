-- Adds a batch of uses on one day. Batch numbers of a sender rise, and a batch sent twice counts once.
-- ARGV: prefix, sender, sequence, date, events_kept, #refusals (how many), values... (of the refusals, then of groups,
--   one per account and mode)
-- refusal: account, key, mode, reason, date, requests, and of the first: address, request id, network, time,
--   method and route
-- group: account, mode, n, the counts of n keys, n keys. The counts of a key are its uses (4 bytes) and its last use
--   in ms (6 bytes), least significant byte first. No key appears twice in a batch.
-- Returns: ok
-- Checks wait while a batch is written. So each group costs one read and one write however many keys it has, with as
-- little work per key as possible. The script runs alone, so nothing changes between the two.

local REFUSAL_ARGS = 11
local SEQUENCE_KEPT_S = 86400
local DAY_KEPT_S = 400 * 86400 -- longer than usage is shown (USAGE_DAYS_MAX)
local KEYS_RANKED = 200        -- twice as many as are shown (USAGE_KEYS_LISTED)

local sequence_name = K.usage_sequence(sender)
local last_sequence = redis.call('GET', sequence_name)
if last_sequence and tonumber(sequence) <= tonumber(last_sequence) then
    return {'ok'}
end

-- Only the most used keys are ranked; ranking all of them would be half the work of a batch. A key is ranked once it
-- exceeds the lowest of them. Uses only grow, so a key that exceeds it for the first time has no rank yet.
local function lowest_rank(account)
    return tonumber(redis.call('ZREVRANGE', K.usage_keys(account), KEYS_RANKED - 1, KEYS_RANKED - 1, 'WITHSCORES')[2] or 0)
end

-- For the same reason a key's rank is updated only when its total passes a multiple of about an eighth of itself.
-- Listings use the exact totals.
local function passes_step(before, total)
    local _, exponent = math.frexp(total)
    local step = 2 ^ math.max(exponent - 4, 0)
    return math.floor(before / step) ~= math.floor(total / step)
end

-- What to write for the group at ARGV[first]: {account, mode, its uses, arguments for HSET, arguments for ZADD, uses on
-- other days {id, day, uses}...}. A last use never moves back, and neither does the day of a record. Late uses, from a
-- node that was slow around midnight, go to the hash of their day.
local function read_group(first)
    local account, n, counts = ARGV[first], tonumber(ARGV[first + 2]), ARGV[first + 3]
    local ids, position, sum, lowest = {unpack(ARGV, first + 4, first + 3 + n)}, 1, 0, lowest_rank(account)
    local records, ranks, others = {}, {}, {}
    for i, packed in ipairs(redis.call('HMGET', K.key_uses(account), unpack(ids))) do
        local id, last, before, day, on_day, uses, used = ids[i], 0, 0, date, 0
        uses, used, position = struct.unpack('<I4I6', counts, position)
        if packed then
            last, before, day, on_day = use_unpack(packed)
        end
        if date == day then
            on_day = on_day + uses
        elseif date > day then
            others[#others + 1] = {id, day, on_day}
            day, on_day = date, uses
        else
            others[#others + 1] = {id, date, uses}
        end
        local total = before + uses
        sum = sum + uses
        records[2 * i - 1], records[2 * i] = id, use_pack(math.max(last, used), total, day, on_day)
        if total > lowest and (before <= lowest or passes_step(before, total)) then
            ranks[#ranks + 1], ranks[#ranks + 2] = string.format('%d', total), id
        end
    end
    return {account, ARGV[first + 1], sum, records, ranks, others}, first + 4 + n
end

local function write_group(account, mode, sum, records, ranks, others)
    redis.call('HINCRBY', K.usage(account), date .. ':' .. mode, string.format('%d', sum))
    redis.call('HSET', K.key_uses(account), unpack(records))
    for _, other in ipairs(others) do
        local name = K.usage_of_day(account, other[2])
        redis.call('HINCRBY', name, other[1], string.format('%d', other[3]))
        redis.call('EXPIRE', name, DAY_KEPT_S)
    end
    if #ranks > 0 then
        redis.call('ZADD', K.usage_keys(account), unpack(ranks))
        redis.call('ZREMRANGEBYRANK', K.usage_keys(account), 0, -KEYS_RANKED - 1)
    end
end

-- Refusals of a key are gathered by reason and network: the first is an event at once, and further ones within the hour,
-- at any node, are in the next event. So a thief is seen even while the owner's own program still uses the key: they
-- come from different networks. Beyond NETWORKS_MAX networks the rest are gathered as one.
local EVENT_EVERY_MS = 3600 * 1000
local EVENT_KEPT_S = 86400
local NETWORKS_MAX = 100

-- name: of the hash that gathers. data: what the event tells besides the network.
local function tell_gathered(name, event, reason, refusal, data)
    local now, network = now_ms(), refusal.network
    local tag = reason .. ' ' .. network
    if redis.call('HEXISTS', name, tag) == 0 and redis.call('HLEN', name) >= NETWORKS_MAX then
        network, tag = 'other', reason .. ' other'
    end
    local told, since, first = (redis.call('HGET', name, tag) or '0 0 '):match('^(%d+) (%d+) (.*)$')
    since, first = since + refusal.requests, first ~= '' and first or refusal.at
    if now - told < EVENT_EVERY_MS then
        redis.call('HSET', name, tag, string.format('%s %d %s', told, since, first))
    else
        redis.call('HSET', name, tag, string.format('%d 0 ', now))
        data.network, data.route, data.first, data.last = network, refusal.route, first, refusal.at
        audit(refusal.account, event, refusal.id, {'', refusal.ip, refusal.request_id, events_kept},
              {class = 'refused', count = string.format('%d', since), data = data})
    end
    redis.call('EXPIRE', name, EVENT_KEPT_S)
end

local function write_refusal(account, id, mode, reason, day, requests, ip, request_id, network, at, route)
    local of_day = K.refused_of_day(account, day)
    local refusal = {account = account, id = id, requests = requests, ip = ip, request_id = request_id,
                     network = network, at = at, route = route}
    redis.call('HINCRBY', K.refused(account), day .. ':' .. mode, requests)
    redis.call('HINCRBY', K.key_refused(account), id .. ':' .. reason, requests)
    redis.call('HINCRBY', of_day, id .. ':' .. reason, requests)
    redis.call('EXPIRE', of_day, DAY_KEPT_S)
    if reason == 'revoked' then
        tell_gathered(K.used_after(id), 'api_key.used_after_revocation', reason, refusal, {})
    else
        tell_gathered(K.refused_told(id), 'requests.refused', reason, refusal, {reason = reason})
    end
end

-- Everything is read before anything is written. A batch that ends in an error is sent again, so nothing of it may have
-- been counted.
local groups, groups_at = {}, FIRST + REFUSAL_ARGS * refusals
local at = groups_at
while at <= #ARGV do
    groups[#groups + 1], at = read_group(at)
end
for _, group in ipairs(groups) do
    write_group(unpack(group))
end
for first = FIRST, groups_at - 1, REFUSAL_ARGS do
    write_refusal(unpack(ARGV, first, first + REFUSAL_ARGS - 1))
end
redis.call('SET', sequence_name, sequence, 'EX', SEQUENCE_KEPT_S)
return {'ok'}

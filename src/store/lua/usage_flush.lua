-- Adds a batch of usage. The numbers of one sender's batches rise; a batch that is sent again counts once.
-- ARGV: prefix, sender, sequence, then six for each entry: account, key, mode, date, uses, last used in ms
-- Returns: ok
-- Checks wait while a batch is written, so what entries share is gathered first: days are added once each, last uses
-- are read and written an account at a time.

local SEQUENCE_KEPT_S = 86400

local sequence_name, sequence = K.usage_sequence(ARGV[2]), ARGV[3]
local last = redis.call('GET', sequence_name)
if last and tonumber(sequence) <= tonumber(last) then
    return {'ok'}
end

local days, last_uses = {}, {} -- account -> '<date>:<mode>' -> uses; account -> {keys in turn, ms by key}
for i = 4, #ARGV, 6 do
    local account, key, mode, date, uses, used_ms = unpack(ARGV, i, i + 5)
    local day, used = date .. ':' .. mode, tonumber(used_ms)
    if not days[account] then
        days[account], last_uses[account] = {}, {keys = {}, ms = {}}
    end
    days[account][day] = (days[account][day] or 0) + tonumber(uses)
    local of = last_uses[account]
    if not of.ms[key] then
        of.keys[#of.keys + 1] = key
    end
    of.ms[key] = math.max(of.ms[key] or 0, used)
    redis.call('HINCRBY', K.usage_of_key(account, key), date, uses)
    redis.call('ZINCRBY', K.usage_keys(account), uses, key)
end

for account, uses_of in pairs(days) do
    for day, uses in pairs(uses_of) do
        redis.call('HINCRBY', K.usage(account), day, string.format('%.0f', uses))
    end
end

for account, of in pairs(last_uses) do
    local before, newer = redis.call('HMGET', K.last_used(account), unpack(of.keys)), {}
    for i, key in ipairs(of.keys) do
        if not before[i] or of.ms[key] > tonumber(before[i]) then
            newer[#newer + 1] = key
            newer[#newer + 1] = string.format('%.0f', of.ms[key])
        end
    end
    if #newer > 0 then
        redis.call('HSET', K.last_used(account), unpack(newer))
    end
end
redis.call('SET', sequence_name, sequence, 'EX', SEQUENCE_KEPT_S)
return {'ok'}

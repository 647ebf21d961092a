-- Adds a batch of usage. The numbers of one sender's batches rise; a batch that is sent again counts once.
-- ARGV: prefix, sender, sequence, then six for each entry: account, key, mode, date, uses, last used in ms
-- Returns: ok

local SEQUENCE_KEPT_S = 86400

local sequence_name, sequence = K.usage_sequence(ARGV[2]), ARGV[3]
local last = redis.call('GET', sequence_name)
if last and tonumber(sequence) <= tonumber(last) then
    return {'ok'}
end
for i = 4, #ARGV, 6 do
    local account, key, mode, date, uses, used_ms = unpack(ARGV, i, i + 5)
    redis.call('HINCRBY', K.usage(account), date .. ':' .. mode, uses)
    redis.call('HINCRBY', K.usage_of_key(account, key), date, uses)
    redis.call('ZINCRBY', K.usage_keys(account), uses, key)
    local before = redis.call('HGET', K.last_used(account), key)
    if not before or tonumber(used_ms) > tonumber(before) then
        redis.call('HSET', K.last_used(account), key, used_ms)
    end
end
redis.call('SET', sequence_name, sequence, 'EX', SEQUENCE_KEPT_S)
return {'ok'}

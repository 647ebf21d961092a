-- Usage of some days, and the most used keys.
-- ARGV: prefix, account, most keys wanted, date...
-- Returns: ok, {requests in test mode, in live mode, for each date; nil: none}, {key, requests...}

local fields = {}
for i = 4, #ARGV do
    fields[#fields + 1] = ARGV[i] .. ':test'
    fields[#fields + 1] = ARGV[i] .. ':live'
end
return {'ok', redis.call('HMGET', K.usage(ARGV[2]), unpack(fields)),
        redis.call('ZREVRANGE', K.usage_keys(ARGV[2]), 0, tonumber(ARGV[3]) - 1, 'WITHSCORES')}

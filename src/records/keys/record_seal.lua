-- Gives one record another seal, unless it has changed since it was read, for example by a revocation.
-- ARGV: prefix, 'key', digest, old key record, new key record; or
--   'user', id, old password, totp and MAC ('' for none), new password, totp and MAC
-- Returns: ok; conflict: it has changed

if ARGV[2] == 'key' then
    if redis.call('GET', K.key(ARGV[3])) ~= ARGV[4] then
        return {'conflict'}
    end
    redis.call('SET', K.key(ARGV[3]), ARGV[5])
    return {'ok'}
end
local user = redis.call('HMGET', K.user(ARGV[3]), 'password', 'totp', 'mac')
if user[1] ~= ARGV[4] or user[2] ~= ARGV[5] or (user[3] or '') ~= ARGV[6] then
    return {'conflict'}
end
redis.call('HSET', K.user(ARGV[3]), 'password', ARGV[7], 'totp', ARGV[8], 'mac', ARGV[9])
return {'ok'}

-- Gives one record another seal. What somebody changed since it was read, as by a revocation, stays.
-- ARGV: prefix, 'key', digest, key record as it was read, as it becomes; or
--   'user', id, password, totp and MAC as they were read ('' none), as they become
-- Returns: ok; conflict: it was changed meanwhile

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

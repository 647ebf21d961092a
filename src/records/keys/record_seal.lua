-- Gives one record another seal, unless it has changed since it was read, for example by a revocation.
-- ARGV: prefix, kind ('key' or 'user'), id (of the user, or the digest of the key), values... {value, value}
-- values: the record of a key before and after; or password, totp and MAC ('' for none) of a user, before and then after.
-- Returns: ok; conflict: it has changed

if kind == 'key' then
    local was, is = unpack(ARGV, FIRST)
    if redis.call('GET', K.key(id)) ~= was then
        return {'conflict'}
    end
    redis.call('SET', K.key(id), is)
    return {'ok'}
end
local password, totp, mac, new_password, new_totp, new_mac = unpack(ARGV, FIRST)
local user = redis.call('HMGET', K.user(id), 'password', 'totp', 'mac')
if user[1] ~= password or user[2] ~= totp or (user[3] or '') ~= mac then
    return {'conflict'}
end
redis.call('HSET', K.user(id), 'password', new_password, 'totp', new_totp, 'mac', new_mac)
return {'ok'}

#!lua flags=allow-oom
-- Replaces a user's recovery codes. A recovery that was begun with an old one ends.
-- ARGV: prefix, user, account, the user's credential, short name of the master key of the digests, digest of each
--   code...
-- Returns: ok; as actor_refused()

local user = ARGV[2]
local refused = actor_refused(ARGV[4], user, ARGV[3])
if refused then
    return refused
end
if redis.call('HEXISTS', K.user_new_totp(user), 'code') == 1 then
    new_totp_forget(user)
end
redis.call('DEL', K.user_recovery_codes(user))
redis.call('SADD', K.user_recovery_codes(user), unpack(ARGV, 6))
redis.call('HSET', K.user(user), 'recovery_codes_at', now_ms(), 'recovery_codes_key', ARGV[5])
return {'ok'}

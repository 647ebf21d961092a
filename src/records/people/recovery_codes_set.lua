#!lua flags=allow-oom
-- Replaces a user's recovery codes. A recovery that was begun with an old one ends.
-- ARGV: prefix, user, ip, request id, events to keep, account, the user's credential, short name of the master key of
--   the digests, digest of each code...
-- Returns: ok; as actor_refused()
-- Event: user.recovery_codes_made

local user, account = ARGV[2], ARGV[6]
local refused = actor_refused(ARGV[7], user, account)
if refused then
    return refused
end
if redis.call('HEXISTS', K.user_new_totp(user), 'code') == 1 then
    new_totp_forget(user)
end
redis.call('DEL', K.user_recovery_codes(user))
redis.call('SADD', K.user_recovery_codes(user), unpack(ARGV, 9))
redis.call('HSET', K.user(user), 'recovery_codes_at', now_ms(), 'recovery_codes_key', ARGV[8])
audit(account, 'user.recovery_codes_made', user, source_from(2))
return {'ok'}

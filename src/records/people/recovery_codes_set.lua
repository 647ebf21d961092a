#!lua flags=allow-oom
-- Replaces a user's recovery codes. A recovery that was begun with an old one ends.
-- ARGV: prefix, user, ip, request_id, events_kept, account, credential (the user's), key_name (short name of the master
--   key of the digests), codes... (the digest of each)
-- Returns: ok; as actor_refused()
-- Event: user.recovery_codes_made

local refused = actor_refused(credential, user, account)
if refused then
    return refused
end
if redis.call('HEXISTS', K.user_new_totp(user), 'code') == 1 then
    new_totp_forget(user)
end
redis.call('DEL', K.user_recovery_codes(user))
redis.call('SADD', K.user_recovery_codes(user), unpack(ARGV, FIRST))
redis.call('HSET', K.user(user), 'recovery_codes_at', now_ms(), 'recovery_codes_key', key_name)
audit(account, 'user.recovery_codes_made', user, {user, ip, request_id, events_kept})
return {'ok'}

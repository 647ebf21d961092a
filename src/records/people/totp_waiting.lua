#!lua flags=allow-oom
-- The authenticator that waits for its confirmation. Counts a try, whether it is right or not.
-- ARGV: prefix, user ('' for a recovery), by (the sid of the session that began it, or the digests of a recovery's
--   ticket, as known_digest() takes them)
-- Returns: ok, user record, sealed secret, who began it; not_found: none, or it had too many tries

-- Whoever may try has seen the secret, so this only ends what cannot be meant.
local TRIES_MAX = 20

if user == '' then
    by = known_digest(by, K.recovery)
    user = redis.call('GET', K.recovery(by))
end
local waiting = user and redis.call('HMGET', K.user_new_totp(user), 'totp', 'by') or {}
local record = waiting[1] and waiting[2] == by and user_record(user)
if not record then
    return {'not_found'}
end
if redis.call('HINCRBY', K.user_new_totp(user), 'tries', 1) > TRIES_MAX then
    new_totp_forget(user)
    return {'not_found'}
end
return {'ok', record, waiting[1], by}

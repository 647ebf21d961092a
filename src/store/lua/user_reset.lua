#!lua flags=allow-oom
-- Replaces a user's password, TOTP secret or both, ends all sessions and recovery codes, forgets all known browsers,
-- unlocks the user and clears everything counted against them. The last TOTP step is cleared only together with its
-- secret; otherwise a code could be used twice, the second time with the new password.
-- ARGV: prefix, user, password ('' keeps it), totp ('' keeps it), actor, ip, request id, events to keep
-- Returns: ok; not_found
-- Events: user.password_reset, user.totp_reset, user.unlocked

local user, password, totp = ARGV[2], ARGV[3], ARGV[4]
local account = redis.call('HGET', K.user(user), 'account')
if not account then
    return {'not_found'}
end
if password ~= '' then
    redis.call('HSET', K.user(user), 'password', password)
    audit(account, 'user.password_reset', user, source_from(5))
end
if totp ~= '' then
    redis.call('HSET', K.user(user), 'totp', totp)
    redis.call('HDEL', K.user(user), 'totp_step')
    audit(account, 'user.totp_reset', user, source_from(5))
end
for _, digest in ipairs(redis.call('SMEMBERS', K.user_sessions(user))) do
    redis.call('DEL', K.session(digest))
end
redis.call('DEL', K.user_sessions(user), K.user_browsers(user), K.user_recovery_codes(user))
new_totp_forget(user)
if user_guard(user).locked then
    audit(account, 'user.unlocked', user, source_from(5))
end
user_forgive(user, now_ms())
return {'ok'}

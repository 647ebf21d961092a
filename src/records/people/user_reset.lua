#!lua flags=allow-oom
-- Replaces a user's password, TOTP secret or both, ends all sessions and recovery codes, forgets all known browsers,
-- unlocks the user and clears everything counted against them. A new password also ends links. The last TOTP step is
-- cleared only together with its secret; otherwise a code could be used twice, the second time with the new password.
-- ARGV: prefix, user, password ('' keeps it), totp ('' keeps it), source {actor, ip, request_id, events_kept}, expired
--   (whether the new password must be changed before anything else, 1 or 0)
-- Returns: ok; not_found
-- Events: user.password_reset, user.totp_reset, user.unlocked, session.ended for each

local now = now_ms()
local account = redis.call('HGET', K.user(user), 'account')
if not account then
    return {'not_found'}
end
if password ~= '' then
    redis.call('HSET', K.user(user), 'password', password)
    redis.call('HDEL', K.user(user), 'password_expired')
    if expired == '1' then
        redis.call('HSET', K.user(user), 'password_expired', 1)
    end
    links_end(user, now)
    audit(account, 'user.password_reset', user, source)
end
if totp ~= '' then
    redis.call('HSET', K.user(user), 'totp', totp)
    redis.call('HDEL', K.user(user), 'totp_step')
    audit(account, 'user.totp_reset', user, source)
end
sessions_end(user, account, '', '', source)
factors_forget(user)
if user_guard(user).locked then
    audit(account, 'user.unlocked', user, source)
end
user_forgive(user, now)
return {'ok'}

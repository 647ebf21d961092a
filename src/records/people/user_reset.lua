#!lua flags=allow-oom
-- Replaces a user's password, TOTP secret or both, ends all sessions and recovery codes, forgets all known browsers,
-- unlocks the user and clears everything counted against them. A new password also ends links. The last TOTP step is
-- cleared only together with its secret; otherwise a code could be used twice, the second time with the new password.
-- ARGV: prefix, user, password ('' keeps it), totp ('' keeps it), actor, ip, request id, events to keep, whether the
--   new password must be changed before anything else (1 or 0)
-- Returns: ok; not_found
-- Events: user.password_reset, user.totp_reset, user.unlocked, session.ended for each

local user, password, totp, now = ARGV[2], ARGV[3], ARGV[4], now_ms()
local account = redis.call('HGET', K.user(user), 'account')
if not account then
    return {'not_found'}
end
if password ~= '' then
    redis.call('HSET', K.user(user), 'password', password)
    redis.call('HDEL', K.user(user), 'password_expired')
    if ARGV[9] == '1' then
        redis.call('HSET', K.user(user), 'password_expired', 1)
    end
    links_end(user, now)
    audit(account, 'user.password_reset', user, source_from(5))
end
if totp ~= '' then
    redis.call('HSET', K.user(user), 'totp', totp)
    redis.call('HDEL', K.user(user), 'totp_step')
    audit(account, 'user.totp_reset', user, source_from(5))
end
sessions_end(user, account, '', '', source_from(5))
factors_forget(user)
if user_guard(user).locked then
    audit(account, 'user.unlocked', user, source_from(5))
end
user_forgive(user, now)
return {'ok'}

#!lua flags=allow-oom
-- Replaces the password of a session's user, who has proven the old one. The session gets a new digest and a fresh
-- step-up. All other sessions end, and so does an authenticator that waits for its confirmation.
-- ARGV: as session_step_up.lua, then the password hash as verified, the new one
-- Returns: as session_step_up.lua; not_found also if the password has changed since it was verified
-- Events: user.password_changed, session.ended for each other session

local old, new, step = ARGV[2], ARGV[3], ARGV[4]
local limits, now = limits_from(7), now_ms()
local step_up = node_time(ARGV[13], now)
local session, refused = proof_check(old, step, ARGV[6], limits, now)
if not session then
    return refused
end
local user = redis.call('HMGET', K.user(session.user), 'account', 'password')
if user[2] ~= ARGV[15] then
    return {'not_found'}
end
if exists(K.session(new)) then
    return {'conflict', tonumber(step)}
end

local source = {session.user, ARGV[10], ARGV[11], ARGV[12]}
proof_take(session, step, ARGV[5])
redis.call('HSET', K.user(session.user), 'password', ARGV[16])
redis.call('HDEL', K.user(session.user), 'password_expired')
new_totp_forget(session.user)
session_rotate(old, new, session, step_up, ARGV[14])
session_touch(new, session, limits, now)
audit(user[1], 'user.password_changed', session.user, source)
sessions_end(session.user, user[1], new, '', source)
return session_reply(session, limits, now)

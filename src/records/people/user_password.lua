#!lua flags=allow-oom
-- Replaces the password of a session's user, who has proven the old one. The session gets a new digest and a fresh
-- step-up. All other sessions end, and so does an authenticator that waits for its confirmation.
-- ARGV: prefix, old (digest), new (digest), step (of TOTP), attempt, tags (its counters), #limits {idle limit, absolute
--   limit, step-up limit} (in ms), ip, request_id, events_kept, start (of the step-up), mac (of the session with it),
--   password (the hash as verified), new_password
-- Returns: as session_step_up.lua; not_found also if the password has changed since it was verified
-- Events: user.password_changed, session.ended for each other session

local now = now_ms()
local step_up = node_time(start, now)
local session, refused = proof_check(old, step, tags, limits, now)
if not session then
    return refused
end
local user = redis.call('HMGET', K.user(session.user), 'account', 'password')
if user[2] ~= password then
    return {'not_found'}
end
if exists(K.session(new)) then
    return {'conflict', tonumber(step)}
end

local source = {session.user, ip, request_id, events_kept}
proof_take(session, step, attempt)
redis.call('HSET', K.user(session.user), 'password', new_password)
redis.call('HDEL', K.user(session.user), 'password_expired')
new_totp_forget(session.user)
session_rotate(old, new, session, step_up, mac)
session_touch(new, session, limits, now)
audit(user[1], 'user.password_changed', session.user, source)
sessions_end(session.user, user[1], new, '', source)
return session_reply(session, limits, now)

#!lua flags=allow-oom
-- Takes a TOTP step, forgives the attempt and makes a session.
-- ARGV: prefix, user, TOTP step, digest, sid, tag of the user, tag of the address, idle, absolute and step-up limit in
--   ms, password and totp as they were verified ('' both: not compared), ip, request id, events kept
-- Returns: ok, session; refused: no such user, or password or TOTP secret changed since they were verified;
--   conflict: the step, or a later one, was used, or the digest exists
-- Event: session.created

local user, step, digest = ARGV[2], ARGV[3], ARGV[4]
local limits = limits_from(8)
local known = redis.call('HMGET', K.user(user), 'account', 'password', 'totp')
if not known[1] or (ARGV[11] ~= '' and (known[2] ~= ARGV[11] or known[3] ~= ARGV[12])) then
    return {'refused'}
end
if not totp_step_is_new(user, step) or exists(K.session(digest)) then
    return {'conflict'}
end

local now = now_ms()
redis.call('HSET', K.user(user), 'totp_step', step)
throttle_forgive(ARGV[6], ARGV[7], now)

-- Sessions that ended by their time to live are still in the user's set.
local sessions = K.user_sessions(user)
for _, other in ipairs(redis.call('SMEMBERS', sessions)) do
    if not exists(K.session(other)) then
        redis.call('SREM', sessions, other)
    end
end
redis.call('SADD', sessions, digest)
if redis.call('PTTL', sessions) < limits[2] then
    redis.call('PEXPIRE', sessions, limits[2])
end

local session = {sid = ARGV[5], user = user, created = now, expires = now + limits[2], step_up = 0}
redis.call('HSET', K.session(digest), 'sid', session.sid, 'user', user, 'account', known[1], 'created', now,
           'expires', session.expires)
session_touch(digest, session, limits, now)
audit(known[1], 'session.created', user, {user, ARGV[13], ARGV[14], ARGV[15]})
return session_reply(session, limits, now)

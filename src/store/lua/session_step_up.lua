#!lua flags=allow-oom
-- Takes a TOTP step, forgives the attempt, gives the session a new digest and a fresh step-up. The old digest is
-- unknown from here on.
-- ARGV: prefix, old digest, new digest, TOTP step, tag of the user, tag of the address, idle, absolute and step-up limit
--   in ms, ip, request id, events kept
-- Returns: ok, session; not_found: it is over; conflict: the step, or a later one, was used, or the new digest exists
-- Event: session.step_up

local old, new, step = ARGV[2], ARGV[3], ARGV[4]
local limits, now = limits_from(7), now_ms()
local session = session_read(old, limits, now)
if not session then
    return {'not_found'}
end
local user = session.user
if not totp_step_is_new(user, step) or exists(K.session(new)) then
    return {'conflict'}
end

redis.call('HSET', K.user(user), 'totp_step', step)
throttle_forgive(ARGV[5], ARGV[6], now)
redis.call('RENAME', K.session(old), K.session(new))
redis.call('SREM', K.user_sessions(user), old)
redis.call('SADD', K.user_sessions(user), new)
redis.call('HSET', K.session(new), 'step_up', now)
session.step_up = now
session_touch(new, session, limits, now)
audit(redis.call('HGET', K.user(user), 'account'), 'session.step_up', user, {user, ARGV[10], ARGV[11], ARGV[12]})
return session_reply(session, limits, now)

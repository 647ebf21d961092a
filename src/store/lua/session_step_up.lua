#!lua flags=allow-oom
-- Takes a TOTP step, and gives the session a new digest and a fresh step-up. The old digest is unknown from now on.
-- ARGV: prefix, old digest, new digest, TOTP step, attempt, its counters, idle, absolute and step-up limit in ms, ip,
--   request id, events to keep, start of the step-up, MAC of the session with it
-- Returns: ok, session; not_found: it is over; refused, seconds to wait: a limit was reached since the attempt began;
--   refused, 0: the user is locked; conflict, the last step used: this step or a later one was used, or the new digest
--   exists; suspended: its account is suspended or closed
-- Event: session.step_up

local old, new, step = ARGV[2], ARGV[3], ARGV[4]
local limits, now = limits_from(7), now_ms()
local step_up = node_time(ARGV[13], now)
local session = session_read(old, limits, now)
if not session then
    return {'not_found'}
end
if account_status(session.account) ~= 'active' then
    return {'suspended'}
end
local user = session.user
local counters, guard = attempt_counters(ARGV[6]), user_guard(user)
local wait_s = attempt_wait_s(counters, now, guard.forgiven)
if wait_s or guard.locked then
    return {'refused', wait_s or 0}
end
local taken = totp_step_taken(user, step)
if taken or exists(K.session(new)) then
    return {'conflict', taken or tonumber(step)}
end

redis.call('HSET', K.user(user), 'totp_step', step)
redis.call('HDEL', K.user(user), 'wrong_codes')
attempt_succeed(counters, ARGV[5])
redis.call('RENAME', K.session(old), K.session(new))
redis.call('SREM', K.user_sessions(user), old)
redis.call('SADD', K.user_sessions(user), new)
redis.call('HSET', K.session(new), 'step_up', step_up, 'mac', ARGV[14])
session.step_up, session.mac = step_up, ARGV[14]
session_touch(new, session, limits, now)
audit(redis.call('HGET', K.user(user), 'account'), 'session.step_up', user, {user, ARGV[10], ARGV[11], ARGV[12]})
return session_reply(session, limits, now)

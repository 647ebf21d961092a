#!lua flags=allow-oom
-- Takes a TOTP step, and gives the session a new digest and a fresh step-up. The old digest is unknown from now on.
-- ARGV: prefix, old digest, new digest, TOTP step, attempt, its counters, idle, absolute and step-up limit in ms, ip,
--   request id, events to keep, start of the step-up, MAC of the session with it
-- Returns: ok, session; conflict, the step: the new digest exists; as proof_check()
-- Event: session.step_up

local old, new, step = ARGV[2], ARGV[3], ARGV[4]
local limits, now = limits_from(7), now_ms()
local step_up = node_time(ARGV[13], now)
local session, refused = proof_check(old, step, ARGV[6], limits, now)
if not session then
    return refused
end
if exists(K.session(new)) then
    return {'conflict', tonumber(step)}
end

proof_take(session, step, ARGV[5])
session_rotate(old, new, session, step_up, ARGV[14])
session_touch(new, session, limits, now)
audit(redis.call('HGET', K.user(session.user), 'account'), 'session.step_up', session.user,
      {session.user, ARGV[10], ARGV[11], ARGV[12]})
return session_reply(session, limits, now)

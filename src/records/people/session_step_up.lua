#!lua flags=allow-oom
-- Takes a TOTP step, and gives the session a new digest and a fresh step-up. The old digest is unknown from now on.
-- ARGV: prefix, old (digest), new (digest), step (of TOTP), attempt, tags (its counters), #limits {idle limit, absolute
--   limit, step-up limit} (in ms), ip, request_id, events_kept, start (of the step-up), mac (of the session with it)
-- Returns: ok, session; conflict, the step: the new digest exists; as proof_check()
-- Event: session.step_up

local now = now_ms()
local step_up = node_time(start, now)
local session, refused = proof_check(old, step, tags, limits, now)
if not session then
    return refused
end
if exists(K.session(new)) then
    return {'conflict', tonumber(step)}
end

proof_take(session, step, attempt)
session_rotate(old, new, session, step_up, mac)
session_touch(new, session, limits, now)
audit(redis.call('HGET', K.user(session.user), 'account'), 'session.step_up', session.user,
      {session.user, ip, request_id, events_kept})
return session_reply(session, limits, now)

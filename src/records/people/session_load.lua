#!lua flags=allow-oom
-- A live session. Notes its use, and from where, but rarely enough that most calls only read.
-- ARGV: prefix, digest, #limits {idle limit, absolute limit, step-up limit} (in ms), ip ('' if a gateway asks)
-- Returns: ok, session; not_found: unknown or over; suspended: its account is suspended or closed

local SEEN_STEP_MS = 10000

local now = now_ms()
local session = session_read(digest, limits, now)
if not session then
    return {'not_found'}
end
if account_status(session.account) ~= 'active' then
    return {'suspended'}
end
if now - session.seen >= math.min(SEEN_STEP_MS, limits[1] / 10) then
    session_touch(digest, session, limits, now)
    if ip ~= '' then
        redis.call('HSET', K.session(digest), 'ip', ip)
    end
end
return session_reply(session, limits, now)

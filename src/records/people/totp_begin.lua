#!lua flags=allow-oom
-- Takes a TOTP step, and keeps a new authenticator until the session confirms it (totp_confirm.lua).
-- ARGV: prefix, digest of the session, TOTP step, attempt, its counters, idle, absolute and step-up limit in ms, sealed
--   secret of the new authenticator
-- Returns: ok; as proof_check()

local session, refused = proof_check(ARGV[2], ARGV[3], ARGV[5], limits_from(6), now_ms())
if not session then
    return refused
end
proof_take(session, ARGV[3], ARGV[4])
new_totp_begin(session.user, ARGV[9], session.sid, nil)
return {'ok'}

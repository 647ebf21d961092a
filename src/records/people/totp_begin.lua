#!lua flags=allow-oom
-- Takes a TOTP step, and keeps a new authenticator until the session confirms it (totp_confirm.lua).
-- ARGV: prefix, digest (of the session), step (of TOTP), attempt, tags (its counters), #limits {idle limit, absolute
--   limit, step-up limit} (in ms), totp (sealed secret of the new authenticator)
-- Returns: ok; as proof_check()

local session, refused = proof_check(digest, step, tags, limits, now_ms())
if not session then
    return refused
end
proof_take(session, step, attempt)
new_totp_begin(session.user, totp, session.sid, nil)
return {'ok'}

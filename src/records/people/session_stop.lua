#!lua flags=allow-oom
-- Ends one session of a user, or all of them, or all but one. A step-up gives a session a new digest, so it is named by
-- its sid.
-- ARGV: prefix, user, sid ('' for all), digest of the session that stays ('' for none), actor, ip, request id, events
--   to keep, the actor's credential
-- Returns: ok, how many ended; not_found: no such user, or no such session; as actor_refused()
-- Event: session.ended, for each

local user = user_record(ARGV[2])
local refused = user and actor_refused(ARGV[9], ARGV[5], user.account)
if not user or refused then
    return refused or {'not_found'}
end
local ended = sessions_end(ARGV[2], user.account, ARGV[4], ARGV[3], source_from(5))
if ended == 0 and ARGV[3] ~= '' then
    return {'not_found'}
end
return {'ok', ended}

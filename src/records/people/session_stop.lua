#!lua flags=allow-oom
-- Ends one session of a user, or all of them, or all but one. A step-up gives a session a new digest, so it is named by
-- its sid.
-- ARGV: prefix, id (of the user), sid ('' for all), stays (digest of the session that does; '' for none), source
--   {actor, ip, request_id, events_kept}, credential (the actor's)
-- Returns: ok, how many ended; not_found: no such user, or no such session; as actor_refused()
-- Event: session.ended, for each

local user = user_record(id)
local refused = user and actor_refused(credential, actor, user.account)
if not user or refused then
    return refused or {'not_found'}
end
local ended = sessions_end(id, user.account, stays, sid, source)
if ended == 0 and sid ~= '' then
    return {'not_found'}
end
return {'ok', ended}

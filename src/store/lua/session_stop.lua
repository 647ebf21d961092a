#!lua flags=allow-oom
-- Ends one session of a user, or all of them. A step-up gives a session a new digest, so it is named by its sid.
-- ARGV: prefix, user, sid ('' for all), actor, ip, request id, events to keep
-- Returns: ok, how many ended; not_found: no such user, or no such session
-- Event: session.ended, for each

local user = user_record(ARGV[2], false)
if not user then
    return {'not_found'}
end
local ended = 0
for _, digest in ipairs(redis.call('SMEMBERS', K.user_sessions(ARGV[2]))) do
    local sid = redis.call('HGET', K.session(digest), 'sid')
    if sid and (ARGV[3] == '' or sid == ARGV[3]) then
        session_forget(digest, ARGV[2])
        audit(user[2], 'session.ended', ARGV[2], source_from(4))
        ended = ended + 1
    end
end
if ended == 0 and ARGV[3] ~= '' then
    return {'not_found'}
end
return {'ok', ended}

#!lua flags=allow-oom
-- Ends a session.
-- ARGV: prefix, digest, ip, request_id, events_kept
-- Returns: ok; not_found
-- Event: session.ended

local session = redis.call('HMGET', K.session(digest), 'user', 'account')
local user, account = session[1], session[2]
if not user then
    return {'not_found'}
end
session_forget(digest, user)
audit(account, 'session.ended', user, {user, ip, request_id, events_kept})
return {'ok'}

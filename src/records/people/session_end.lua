#!lua flags=allow-oom
-- Ends a session.
-- ARGV: prefix, digest, ip, request id, events to keep
-- Returns: ok; not_found
-- Event: session.ended

local digest = ARGV[2]
local session = redis.call('HMGET', K.session(digest), 'user', 'account')
local user, account = session[1], session[2]
if not user then
    return {'not_found'}
end
session_forget(digest, user)
audit(account, 'session.ended', user, {user, ARGV[3], ARGV[4], ARGV[5]})
return {'ok'}

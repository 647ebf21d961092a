#!lua flags=allow-oom
-- Records a failed attempt. An unknown user has no account whose trail could tell it.
-- ARGV: prefix, user ('' unknown), ip, request id, events kept
-- Returns: ok
-- Event: login.failed

local user = ARGV[2]
local account = user ~= '' and redis.call('HGET', K.user(user), 'account')
if account then
    audit(account, 'login.failed', user, {user, ARGV[3], ARGV[4], ARGV[5]})
end
return {'ok'}

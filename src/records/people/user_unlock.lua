#!lua flags=allow-oom
-- Unlocks a user and clears everything counted against them.
-- ARGV: prefix, user, actor, ip, request id, events to keep
-- Returns: ok; not_found
-- Event: user.unlocked

local user = ARGV[2]
local account = redis.call('HGET', K.user(user), 'account')
if not account then
    return {'not_found'}
end
user_forgive(user, now_ms())
audit(account, 'user.unlocked', user, source_from(3))
return {'ok'}

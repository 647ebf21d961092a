#!lua flags=allow-oom
-- Unlocks a user and clears everything counted against them.
-- ARGV: prefix, user, source {actor, ip, request_id, events_kept}
-- Returns: ok; not_found
-- Event: user.unlocked

local account = redis.call('HGET', K.user(user), 'account')
if not account then
    return {'not_found'}
end
user_forgive(user, now_ms())
audit(account, 'user.unlocked', user, source)
return {'ok'}

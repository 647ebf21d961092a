#!lua flags=allow-oom
-- A user is about to look for a user code, in the partition of the user's account. The code counts as wrong until
-- device_found.lua: codes are short enough to guess, and guesses in parallel must not get more replies than the limit.
-- ARGV: prefix, tag (of the user), user, account, credential (the user's)
-- Returns: ok; refused, seconds to wait; as actor_refused()

local FREE_PER_USER = 5

local refused, now = actor_refused(credential, user, account), now_ms()
if refused then
    return refused
end
local wait = throttle_wait(tag, now)
if wait > 0 then
    return {'refused', math.ceil(wait / 1000)}
end
throttle_count(tag, FREE_PER_USER, now)
return {'ok'}

#!lua flags=allow-oom
-- A user is about to look for a user code, in the partition of the user's account. The code counts as wrong until
-- device_found.lua: codes are short enough to guess, and guesses in parallel must not get more replies than the limit.
-- ARGV: prefix, tag of the user, user, account, the user's credential
-- Returns: ok; refused, seconds to wait; as actor_refused()

local FREE_PER_USER = 5

local refused, now = actor_refused(ARGV[5], ARGV[3], ARGV[4]), now_ms()
if refused then
    return refused
end
local wait = throttle_wait(ARGV[2], now)
if wait > 0 then
    return {'refused', math.ceil(wait / 1000)}
end
throttle_count(ARGV[2], FREE_PER_USER, now)
return {'ok'}

#!lua flags=allow-oom
-- Counts one attempt to log in or to step up against the user and the address, before it is judged. A refused attempt
-- is not counted.
-- ARGV: prefix, by ('email' or 'user'), email or user id, tag of the user, tag of the address
-- Returns: ok, user record with secrets or nil for an unknown one; refused, seconds to wait

local user_tag, ip_tag = ARGV[4], ARGV[5]
local now = now_ms()
local wait = math.max(throttle_wait(user_tag, now), throttle_wait(ip_tag, now))
if wait > 0 then
    return {'refused', math.ceil(wait / 1000)}
end
throttle_count(user_tag, THROTTLE_FREE_PER_USER, now)
throttle_count(ip_tag, THROTTLE_FREE_PER_ADDRESS, now)

local user = ARGV[3]
if ARGV[2] == 'email' then
    user = redis.call('GET', K.email(ARGV[3]))
end
return {'ok', user and user_record(user, true) or false}

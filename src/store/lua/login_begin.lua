#!lua flags=allow-oom
-- Reserves an attempt to sign in or to step up before it is judged. Counts nothing yet.
-- ARGV: prefix, 'email' or 'user', the email or user id, attempt, its counters, its counters if the browser is known
--   ('' for none), digest of the browser's token ('' for none), digests of a recovery code as known_digest() takes them
--   ('' for none)
-- Returns: ok, user record with secrets or nil if unknown, whether the browser is known, whether the user is locked,
--   whether the recovery code is one of the user's; refused, seconds to wait, user id or nil if unknown

local user, now = ARGV[3], now_ms()
if ARGV[2] == 'email' then
    user = redis.call('GET', K.email(ARGV[3]))
end
local guard = user_guard(user)
local is_known = user and ARGV[7] ~= '' and redis.call('ZSCORE', K.user_browsers(user), ARGV[7]) and true or false
local counters = attempt_counters(is_known and ARGV[6] or ARGV[5])
local wait_s = attempt_wait_s(counters, now, guard.forgiven)
if not wait_s and not attempt_reserve(counters, ARGV[4], now) then
    wait_s = 1
end
if wait_s then
    return {'refused', wait_s, user or false}
end
return {'ok', user and user_record(user, true) or false, is_known and 1 or 0, guard.locked and 1 or 0,
        user and recovery_code_find(user, ARGV[8]) and 1 or 0}

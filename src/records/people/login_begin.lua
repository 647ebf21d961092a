#!lua flags=allow-oom
-- Begins an attempt to sign in or to step up: returns the records that the node judges it by, and reserves its counters
-- in this partition. Counts nothing yet.
-- ARGV: prefix, user ('' if unknown), attempt, tags (its counters in this partition), tags_known (those if the browser
--   is known; '' for none), browser (digest of its token; '' for none), code_digests (of a recovery code, as
--   known_digest() takes them; '' for none)
-- Returns: ok, user record with secrets or nil if unknown, whether the browser is known, whether the user is locked,
--   whether the recovery code is one of the user's, when an operator cleared the user's counters (0: never); refused,
--   seconds to wait

local now = now_ms()
local guard = user_guard(user)
local is_known = browser ~= '' and redis.call('ZSCORE', K.user_browsers(user), browser) and true or false
local counters = attempt_counters(is_known and tags_known or tags)
local wait_s = attempt_reserve(counters, attempt, now, guard.forgiven)
if wait_s then
    return {'refused', wait_s}
end
return {'ok', user_record(user, 'password', 'totp') or false, is_known and 1 or 0, guard.locked and 1 or 0,
        recovery_code_find(user, code_digests) and 1 or 0, guard.forgiven}

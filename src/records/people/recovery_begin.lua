#!lua flags=allow-oom
-- Begins a recovery: password and recovery code were right. The new authenticator waits for its confirmation
-- (totp_confirm.lua), and the code is spent only then, so a lost answer costs no code. A ticket names the recovery; a
-- later one of the same user replaces it.
-- ARGV: prefix, user, attempt, tags (its counters in this partition), password (the hash as verified), code_digests (of
--   the recovery code, as known_digest() takes them), ticket (its digest), totp (sealed secret of the new
--   authenticator)
-- Returns: ok; refused, seconds to wait: a limit was reached since the attempt began; refused, 0: the user is locked or
--   disabled; not_found: no such user, the password has changed since it was verified, or the code was spent;
--   suspended: the account is suspended or closed

local now = now_ms()
local counters, guard = attempt_counters(tags), user_guard(user)
local code = recovery_code_find(user, code_digests)
if not code or redis.call('HGET', K.user(user), 'password') ~= password then
    return {'not_found'}
end
local wait_s = attempt_wait_s(counters, now, guard.forgiven)
if wait_s or guard.locked or redis.call('HEXISTS', K.user(user), 'disabled') == 1 then
    return {'refused', wait_s or 0}
end
if account_status(redis.call('HGET', K.user(user), 'account')) ~= 'active' then
    return {'suspended'}
end
redis.call('HDEL', K.user(user), 'wrong_codes')
attempt_succeed(counters, attempt)
new_totp_begin(user, totp, ticket, code)
redis.call('SET', K.recovery(ticket), user, 'PX', NEW_TOTP_MS)
return {'ok'}

#!lua flags=allow-oom
-- Begins a recovery: password and recovery code were right. The new authenticator waits for its confirmation
-- (totp_confirm.lua), and the code is spent only then, so a lost answer costs no code. A ticket names the recovery; a
-- later one of the same user replaces it.
-- ARGV: prefix, user, attempt, its counters in this partition, password hash as verified, digests of the recovery code
--   as known_digest() takes them, digest of the ticket, sealed secret of the new authenticator
-- Returns: ok; refused, seconds to wait: a limit was reached since the attempt began; refused, 0: the user is locked or
--   disabled; not_found: no such user, the password has changed since it was verified, or the code was spent;
--   suspended: the account is suspended or closed

local user, now = ARGV[2], now_ms()
local counters, guard = attempt_counters(ARGV[4]), user_guard(user)
local code = recovery_code_find(user, ARGV[6])
if not code or redis.call('HGET', K.user(user), 'password') ~= ARGV[5] then
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
attempt_succeed(counters, ARGV[3])
new_totp_begin(user, ARGV[8], ARGV[7], code)
redis.call('SET', K.recovery(ARGV[7]), user, 'PX', NEW_TOTP_MS)
return {'ok'}

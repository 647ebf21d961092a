#!lua flags=allow-oom
-- Replaces a user's authenticator by the one that waits, after a code of it was right. The step of that code is taken.
-- A recovery code is spent here. All sessions end; the one that began it stays.
-- ARGV: prefix, user, by (who began it), totp (sealed secret as verified), step (of TOTP), stays (digest of the session
--   that does; '' for a recovery), ip, request_id, events_kept, credential (the session's; '' for a recovery)
-- Returns: ok, how many sessions ended; not_found: it no longer waits, the recovery code was spent, or the user is
--   disabled; suspended: the account is; as actor_refused()
-- Events: user.totp_changed, or user.recovery_used; session.ended for each

local known = redis.call('HMGET', K.user(user), 'account', 'disabled')
local account = known[1]
local refused = account and actor_refused(credential, user, account)
if not account or refused or known[2] then
    return refused or {'not_found'}
end
if account_status(account) ~= 'active' then
    return {'suspended'}
end
local waiting = redis.call('HMGET', K.user_new_totp(user), 'by', 'totp', 'code')
if waiting[1] ~= by or waiting[2] ~= totp
    or (waiting[3] and not recovery_code_find(user, waiting[3])) then
    return {'not_found'}
end

local source = {user, ip, request_id, events_kept}
redis.call('HSET', K.user(user), 'totp', totp, 'totp_step', step)
new_totp_forget(user)
if waiting[3] then
    redis.call('SREM', K.user_recovery_codes(user), waiting[3])
    redis.call('HSET', K.user(user), 'recovered', now_ms())
end
audit(account, waiting[3] and 'user.recovery_used' or 'user.totp_changed', user, source)
return {'ok', sessions_end(user, account, stays, '', source)}

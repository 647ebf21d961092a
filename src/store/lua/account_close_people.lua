#!lua flags=allow-oom
-- Removes some of the people of an account that is being closed, with their sessions. Their emails are free again.
-- ARGV: prefix, account, actor, ip, request id, events to keep
-- Returns: ok, how many were removed, whether that was all (1 or 0), how many sessions ended; conflict: it is not being
--   closed
-- Event: user.removed, for each

local USERS_MAX = 20

local account = ARGV[2]
if account_status(account) ~= 'closing' then
    return {'conflict'}
end
local ended, users = 0, redis.call('SRANDMEMBER', K.account_users(account), USERS_MAX)
for _, user in ipairs(users) do
    for _, digest in ipairs(redis.call('SMEMBERS', K.user_sessions(user))) do
        ended = ended + redis.call('DEL', K.session(digest))
    end
    local email = redis.call('HGET', K.user(user), 'email')
    if email and redis.call('GET', K.email(email)) == user then
        redis.call('DEL', K.email(email))
    end
    new_totp_forget(user)
    redis.call('DEL', K.user(user), K.user_sessions(user), K.user_browsers(user), K.user_new_browsers(user),
               K.user_recovery_codes(user))
    redis.call('SREM', K.account_users(account), user)
    audit(account, 'user.removed', user, source_from(3))
end
return {'ok', #users, redis.call('SCARD', K.account_users(account)) == 0 and 1 or 0, ended}

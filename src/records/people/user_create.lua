-- Adds a user, who has claimed the email (email_claim.lua), to an account. Repeating changes nothing.
-- ARGV: prefix, user, account, email, password, totp, created, actor, ip, request id, events to keep, MAC, role,
--   whether the password must be changed before anything else (1 or 0)
-- Returns: ok; refused: no such account, or it is closed or about to be; conflict: the user was voided, or the id exists
-- Event: user.created

local user, account, email = ARGV[2], ARGV[3], ARGV[4]
if user_was_created(user, account, email) then
    return {'ok'}
end
if exists(K.void(user)) or exists(K.user(user)) then
    return {'conflict'}
end
if not exists(K.account(account)) or account_status(account):sub(1, 4) == 'clos' then
    return {'refused'}
end
redis.call('HSET', K.user(user), 'account', account, 'email', email, 'password', ARGV[5], 'totp', ARGV[6],
           'created', ARGV[7], 'mac', ARGV[12])
if ARGV[14] == '1' then
    redis.call('HSET', K.user(user), 'password_expired', 1)
end
user_put_state(user, ARGV[13], '')
people_put(account, user, ARGV[13], '')
audit(account, 'user.created', user, source_from(8))
return {'ok'}

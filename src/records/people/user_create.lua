-- Adds a user, who has claimed the email (email_claim.lua), to an account. Repeating changes nothing.
-- ARGV: prefix, user, account, email, password, totp, created, source {actor, ip, request_id, events_kept}, mac, role,
--   expired (whether the password must be changed before anything else, 1 or 0)
-- Returns: ok; refused: no such account, or it is closed or about to be; conflict: the user was voided, or the id exists
-- Event: user.created

if user_was_created(user, account, email) then
    return {'ok'}
end
if exists(K.void(user)) or exists(K.user(user)) then
    return {'conflict'}
end
if not exists(K.account(account)) or account_status(account):sub(1, 4) == 'clos' then
    return {'refused'}
end
redis.call('HSET', K.user(user), 'account', account, 'email', email, 'password', password, 'totp', totp,
           'created', created, 'mac', mac)
if expired == '1' then
    redis.call('HSET', K.user(user), 'password_expired', 1)
end
user_put_state(user, role, '')
people_put(account, user, role, '')
audit(account, 'user.created', user, source)
return {'ok'}

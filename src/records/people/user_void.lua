-- Makes sure that a user who does not exist is never created, so that another may have the email. Final.
-- ARGV: prefix, user, email
-- Returns: ok; conflict: the user exists, with that email

if redis.call('HGET', K.user(ARGV[2]), 'email') == ARGV[3] then
    return {'conflict'}
end
redis.call('SET', K.void(ARGV[2]), 1)
return {'ok'}

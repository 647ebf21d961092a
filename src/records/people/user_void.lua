-- Makes sure that a user who does not exist is never created, so that another may have the email. Final.
-- ARGV: prefix, user, email
-- Returns: ok; conflict: the user exists, with that email

if redis.call('HGET', K.user(user), 'email') == email then
    return {'conflict'}
end
redis.call('SET', K.void(user), 1)
return {'ok'}

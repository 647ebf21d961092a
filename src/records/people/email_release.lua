#!lua flags=allow-oom
-- Releases a user's claim to an email, unless another user has replaced it.
-- ARGV: prefix, email, user
-- Returns: ok

if email_claimant(email) == user then
    redis.call('DEL', K.email(email))
end
return {'ok'}

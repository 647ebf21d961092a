#!lua flags=allow-oom
-- Releases a user's claim to an email, unless another user has replaced it.
-- ARGV: prefix, email, user
-- Returns: ok

if email_claimant(ARGV[2]) == ARGV[3] then
    redis.call('DEL', K.email(ARGV[2]))
end
return {'ok'}

#!lua flags=allow-oom
-- Gives up a user's claim to an email, unless it is somebody else's by now.
-- ARGV: prefix, email, user
-- Returns: ok

if email_claimant(ARGV[2]) == ARGV[3] then
    redis.call('DEL', K.email(ARGV[2]))
end
return {'ok'}

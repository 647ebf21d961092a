-- How many recovery codes a user has left.
-- ARGV: prefix, user
-- Returns: ok, how many, when they were made (0: never)

return {'ok', redis.call('SCARD', K.user_recovery_codes(user)),
        tonumber(redis.call('HGET', K.user(user), 'recovery_codes_at') or '0')}

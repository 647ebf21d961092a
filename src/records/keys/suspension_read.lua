-- How the suspension of an account took effect.
-- ARGV: prefix, account
-- Returns: ok, suspended since, then as ending_read(); not_found: unknown, or active

local a = redis.call('HMGET', K.account(account), 'suspended', 'closing')
if not a[1] and not a[2] then
    return {'not_found'}
end
return {'ok', a[1] or a[2], ending_read(account, account)}

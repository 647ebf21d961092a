-- Makes an account.
-- ARGV: prefix, account, name, created
-- Returns: ok; conflict: the id exists

if exists(K.account(ARGV[2])) then
    return {'conflict'}
end
redis.call('HSET', K.account(ARGV[2]), 'name', ARGV[3], 'created', ARGV[4])
redis.call('ZADD', K.accounts(), 0, ARGV[2])
return {'ok'}

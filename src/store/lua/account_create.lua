-- Creates an account. The first one gives the store its id, which never changes.
-- ARGV: prefix, account, name, created, id for a new store
-- Returns: ok; conflict: the id exists

if exists(K.account(ARGV[2])) then
    return {'conflict'}
end
redis.call('HSET', K.account(ARGV[2]), 'name', ARGV[3], 'created', ARGV[4])
redis.call('ZADD', K.accounts(), 0, ARGV[2])
redis.call('HSETNX', K.store(), 'id', ARGV[5])
return {'ok'}

-- Creates an account. The first one gives the store its id, which never changes.
-- ARGV: prefix, account, name, created, id for a new store, partitions of the store, number of this one
-- Returns: ok; conflict: the id exists

if exists(K.account(ARGV[2])) then
    return {'conflict'}
end
redis.call('HSET', K.account(ARGV[2]), 'name', ARGV[3], 'created', ARGV[4])
redis.call('ZADD', K.accounts(), 0, ARGV[2])
if redis.call('HSETNX', K.store(), 'id', ARGV[5]) == 1 then
    redis.call('HSET', K.store(), 'partitions', ARGV[6], 'partition', ARGV[7])
end
return {'ok'}

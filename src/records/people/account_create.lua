-- Creates an account. The first one gives the store its id, which never changes.
-- ARGV: prefix, account, name, created, new_id (for a new store), partitions (of the store), partition (number of this
--   one)
-- Returns: ok; conflict: the id exists

if exists(K.account(account)) then
    return {'conflict'}
end
redis.call('HSET', K.account(account), 'name', name, 'created', created)
redis.call('ZADD', K.accounts(), 0, account)
if redis.call('HSETNX', K.store(), 'id', new_id) == 1 then
    redis.call('HSET', K.store(), 'partitions', partitions, 'partition', partition)
end
return {'ok'}

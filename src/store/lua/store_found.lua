-- Gives a partition without a store its part of one: the store's id, the number of its partitions, and its own. They never
-- change.
-- ARGV: prefix, id for a new store, partitions, number of this one
-- Returns: ok, the store's id

if redis.call('HSETNX', K.store(), 'id', ARGV[2]) == 1 then
    redis.call('HSET', K.store(), 'partitions', ARGV[3], 'partition', ARGV[4])
end
return {'ok', redis.call('HGET', K.store(), 'id')}

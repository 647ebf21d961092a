-- Gives a partition without a store its part of one: the store's id, the number of its partitions, and its own. They
-- never change.
-- ARGV: prefix, id for a new store, partitions, number of this one, prefix_beside
-- Returns: ok, the store's id; conflict: the store has another number of partitions

if redis.call('HEXISTS', K.store(), 'id') == 0 and store_beside(ARGV[5]) then
    return {'conflict'}
elseif redis.call('HSETNX', K.store(), 'id', ARGV[2]) == 1 then
    redis.call('HSET', K.store(), 'partitions', ARGV[3], 'partition', ARGV[4])
elseif redis.call('HGET', K.store(), 'partitions') ~= ARGV[3] then
    return {'conflict'}
end
return {'ok', redis.call('HGET', K.store(), 'id')}

-- Gives a partition without a store its part of one: the store's id, the number of its partitions, and its own. They
-- never change.
-- ARGV: prefix, new_id (for a new store), partitions, partition (number of this one), prefix_beside
-- Returns: ok, the store's id; conflict: the store has another number of partitions

if redis.call('HEXISTS', K.store(), 'id') == 0 and store_beside(prefix_beside) then
    return {'conflict'}
elseif redis.call('HSETNX', K.store(), 'id', new_id) == 1 then
    redis.call('HSET', K.store(), 'partitions', partitions, 'partition', partition)
elseif redis.call('HGET', K.store(), 'partitions') ~= partitions then
    return {'conflict'}
end
return {'ok', redis.call('HGET', K.store(), 'id')}

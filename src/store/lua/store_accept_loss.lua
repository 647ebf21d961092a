#!lua flags=allow-oom
-- An operator accepts that this Redis has lost acknowledged changes. The count of such decisions goes up: a node that knew
-- of more before asks for it no more.
-- ARGV: prefix, run id (nodes of 0.3.0 go by it)
-- Returns: ok, how many endings were missing, how many other changes were lost; not_found: the store is empty

local store = redis.call('HMGET', K.store(), 'id', 'missing', 'lost_changes')
if not store[1] then
    return {'not_found'}
end
redis.call('HSET', K.store(), 'accepted', ARGV[2])
redis.call('HINCRBY', K.store(), 'losses_accepted', 1)
redis.call('HDEL', K.store(), 'missing', 'lost_changes')
redis.call('DEL', K.missing())
return {'ok', tonumber(store[2] or '0'), tonumber(store[3] or '0')}

#!lua flags=allow-oom
-- An operator accepts that this Redis has lost acknowledged changes. That holds in the present era: a node that comes later
-- in it and knows of more does not ask for it.
-- ARGV: prefix, run_id (nodes of 0.3.0 go by it)
-- Returns: ok, how many endings were missing, how many other changes were lost; not_found: the store is empty

local store = redis.call('HMGET', K.store(), 'id', 'missing', 'lost_changes', 'era')
if not store[1] then
    return {'not_found'}
end
redis.call('HSET', K.store(), 'accepted', run_id, 'accepted_era', store[4] or '')
redis.call('HDEL', K.store(), 'missing', 'lost_changes')
redis.call('DEL', K.missing())
return {'ok', tonumber(store[2] or '0'), tonumber(store[3] or '0')}

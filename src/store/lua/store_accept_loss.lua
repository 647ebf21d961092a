-- An operator accepts that this Redis has lost acknowledged changes. It applies to one Redis process: the losses of
-- another one must be accepted there.
-- ARGV: prefix, run id
-- Returns: ok; not_found: the store is empty

if redis.call('HEXISTS', K.store(), 'id') == 0 then
    return {'not_found'}
end
redis.call('HSET', K.store(), 'accepted', ARGV[2])
return {'ok'}

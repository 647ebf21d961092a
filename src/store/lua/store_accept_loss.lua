-- An operator accepts what this Redis has lost of what nodes had acknowledged. It counts for one process of Redis: what
-- another one lacks must be accepted there.
-- ARGV: prefix, run id
-- Returns: ok; not_found: the store is empty

if redis.call('HEXISTS', K.store(), 'id') == 0 then
    return {'not_found'}
end
redis.call('HSET', K.store(), 'accepted', ARGV[2])
return {'ok'}

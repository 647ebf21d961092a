#!lua flags=allow-oom
-- The last step but one of 'store copy', at its source: from now on no node and no command decides anything there.
-- Nodes and commands of this version read `moved`. Those of earlier versions find another id at their next read or
-- heartbeat, and if they are started again a schema newer than any, of a store into which a copy is under way.
-- `copying` keeps the id for the next copy back into this place, and moved_schema and moved_former the rest.
-- ARGV: prefix, id (of the store), to (where it has moved), no_id (of no store), no_schema (of a store that nobody may
--   use)
-- Returns: ok; conflict: another store is there

local s = redis.call('HMGET', K.store(), 'id', 'moved', 'copying', 'former')
if s[2] then
    return {s[3] == id and 'ok' or 'conflict'}
end
if s[1] ~= id then
    return {'conflict'}
end
redis.call('HSET', K.store(), 'moved', to, 'copying', id, 'id', no_id, 'moved_schema',
           redis.call('GET', K.schema()))
if s[4] then
    redis.call('HSET', K.store(), 'moved_former', s[4])
    redis.call('HDEL', K.store(), 'former')
end
redis.call('SET', K.schema(), no_schema)
return {'ok'}

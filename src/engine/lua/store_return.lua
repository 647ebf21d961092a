#!lua flags=allow-oom
-- Undoes store_leave.lua, because the copy was not finished or its target is lost: nodes serve this place again.
-- ARGV: prefix
-- Returns: ok

local s = redis.call('HMGET', K.store(), 'moved', 'copying', 'moved_schema', 'moved_former')
if s[1] then
    redis.call('HSET', K.store(), 'id', s[2])
    if s[4] then
        redis.call('HSET', K.store(), 'former', s[4])
    end
    redis.call('SET', K.schema(), s[3])
    redis.call('HDEL', K.store(), 'moved', 'copying', 'moved_schema', 'moved_former')
end
return {'ok'}

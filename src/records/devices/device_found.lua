#!lua flags=allow-oom
-- Takes back what device_seek.lua counted, because the code was right or could not be looked for. Only this count, or
-- later ones that are too few without it, can have begun a wait.
-- ARGV: prefix, tag (of the user)
-- Returns: ok

local counter = K.throttle(tag)
if throttle_read(tag).n > 1 then
    redis.call('HINCRBY', counter, 'n', -1)
    redis.call('HSET', counter, 'until', 0)
else
    redis.call('DEL', counter)
end
return {'ok'}

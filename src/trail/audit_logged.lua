#!lua flags=allow-oom
-- Forgets copies of events that a log has.
-- ARGV: prefix, then: class, copy...
-- Returns: ok

for i = 2, #ARGV, 2 do
    redis.call('XDEL', K.unlogged(ARGV[i]), ARGV[i + 1])
end
return {'ok'}

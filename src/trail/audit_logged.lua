#!lua flags=allow-oom
-- Forgets copies of events that a log has.
-- ARGV: prefix, copies... {class, copy}
-- Returns: ok

for i = FIRST, #ARGV, EACH do
    redis.call('XDEL', K.unlogged(ARGV[i]), ARGV[i + 1])
end
return {'ok'}

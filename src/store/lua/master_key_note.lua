-- Notes a master key that records are made with from now on, or forgets one, and says until when records without a seal
-- are taken.
-- ARGV: prefix, name to be noted ('' none), name to be forgotten ('' none), until when ('' not)
-- Returns: ok

if ARGV[2] ~= '' then
    redis.call('SADD', K.master_keys(), ARGV[2])
end
if ARGV[3] ~= '' then
    redis.call('SREM', K.master_keys(), ARGV[3])
end
if ARGV[4] ~= '' then
    redis.call('SET', K.unsealed(), ARGV[4])
else
    redis.call('DEL', K.unsealed())
end
return {'ok'}

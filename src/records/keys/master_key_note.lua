-- Notes the master key that seals records from now on, removes another, and sets until when records without a seal are
-- accepted.
-- ARGV: prefix, name to note ('' for none), name to remove ('' for none), until when, with its MAC ('' for not at all)
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

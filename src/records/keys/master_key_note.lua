-- Notes the master key that seals records from now on, removes another, and sets until when records without a seal are
-- accepted.
-- ARGV: prefix, note (a name; '' for none), remove (a name; '' for none), unsealed (until when, with its MAC; '' for
--   not at all)
-- Returns: ok

if note ~= '' then
    redis.call('SADD', K.master_keys(), note)
end
if remove ~= '' then
    redis.call('SREM', K.master_keys(), remove)
end
if unsealed ~= '' then
    redis.call('SET', K.unsealed(), unsealed)
else
    redis.call('DEL', K.unsealed())
end
return {'ok'}

-- Reads the schema version of this store, and claims an empty one. Writes and publishes in any case, so that it fails
-- where Redis takes no writes, or its user may not publish.
-- ARGV: prefix, the newest schema this program knows
-- Returns: ok, schema, now in ms, whether only scripts with allow-oom may write, for Redis' memory is full (1 or 0);
--   refused, schema: it is newer than ours

local ours = tonumber(ARGV[2])
local schema = tonumber(redis.call('GET', K.schema()) or '0')
if schema > ours then
    return {'refused', schema}
end
local written = redis.pcall('SET', K.schema(), schema == 0 and ours or schema)
local full = written.err and written.err:sub(1, 4) == 'OOM ' and schema > 0
if written.err and not full then
    return written
end
redis.call('PUBLISH', K.node('-'), 'examined')
return {'ok', schema == 0 and ours or schema, now_ms(), full and 1 or 0}

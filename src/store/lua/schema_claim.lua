-- Reads the schema version of this store, and claims an empty one. Writes and publishes in any case, so that it fails
-- where Redis takes no writes, or its user may not publish.
-- ARGV: prefix, the newest schema this program knows
-- Returns: ok, schema, now in ms; refused, schema: it is newer than ours

local ours = tonumber(ARGV[2])
local schema = tonumber(redis.call('GET', K.schema()) or '0')
if schema > ours then
    return {'refused', schema}
end
if schema == 0 then
    schema = ours
end
redis.call('SET', K.schema(), schema)
redis.call('PUBLISH', K.node('-'), 'examined')
return {'ok', schema, now_ms()}

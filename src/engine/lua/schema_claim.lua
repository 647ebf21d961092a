-- Reads the schema version of this store, and claims an empty one. Always writes and publishes, so it fails if Redis
-- accepts no writes or its user may not publish. A store that has accounts but no id comes from an earlier version and
-- gets the offered id. An empty store gets none here: its first account brings it. If a store with another number of
-- partitions lies beside ours in the same Redis, nothing is claimed.
-- ARGV: prefix, #ours (the newest schema that this program knows), new_id (for the store), prefix_beside
-- Returns: ok, schema, now in ms, whether memory is full, so that only scripts with allow-oom may write (1 or
--   0), lease_max, number of the store's partitions (0: there is no store), number of this one, whether it has aliases
--   (1 or 0), by how many ms the store's time is ahead of Redis' clock (below 0: behind); refused, schema: newer than
--   ours, whether that is because a copy into it is under way (1 or 0), or where the store has moved to ('': it has not)

local beside = not exists(K.accounts()) and redis.call('HEXISTS', K.store(), 'id') == 0 and store_beside(prefix_beside)

-- While nothing is scheduled, the time is Redis' clock.
local function time_ahead()
    local first, last, clock, seen = store_times()
    return exists(K.key_ends()) and store_time_ahead(math.max(first, seen), math.max(last, seen), clock) or 0
end

-- A store of an earlier version has a single partition and does not say so.
local function layout()
    local s = redis.call('HMGET', K.store(), 'id', 'partitions', 'partition', 'aliased')
    return beside or tonumber(s[2] or s[1] and '1' or '0'), tonumber(s[3] or '0'), s[4] and 1 or 0, time_ahead()
end

local schema = tonumber(redis.call('GET', K.schema()) or '0')
if schema > ours then
    local s = redis.call('HMGET', K.store(), 'copying', 'moved')
    return {'refused', schema, s[1] and 1 or 0, s[2] or ''}
end
local written = redis.pcall('SET', K.schema(), schema == 0 and ours or schema)
local full = written.err and written.err:sub(1, 4) == 'OOM ' and schema > 0
if written.err and not full then
    return written
end
if beside and schema == 0 then
    redis.call('DEL', K.schema())
end
if not full and exists(K.accounts()) then
    redis.call('HSETNX', K.store(), 'id', new_id)
end
redis.call(PUBLISH, K.node('-'), 'examined')
return {'ok', schema == 0 and ours or schema, now_ms(), full and 1 or 0,
        tonumber(redis.call('GET', K.lease_max()) or '0'), layout()}

#!lua flags=allow-oom
-- Writes down some of the revocations that were scheduled and have taken effect by themselves: the event, and the lists.
-- ARGV: prefix, events_kept, known (what the node knows of the store's time, as for store_ms_within() in the prelude)
-- Returns: ok, key...
-- Event: <kind>.revoked, with the reason `scheduled`

local KEYS_MAX = 100

local reply = {'ok'}
local now = store_ms_within(known)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', K.key_ends(), '-inf', now, 'LIMIT', 0, KEYS_MAX)) do
    -- A record that is malformed is refused anyway, and must not keep others waiting.
    local did, record = pcall(key_record, id)
    if did and record then
        key_judge_end(record, now)
    end
    if did and record and record.is_due then
        key_end_due(record, events_kept)
        reply[#reply + 1] = key_reply(record)
    elseif did and record and record.ends then
        redis.call('ZADD', K.key_ends(), record.ends, id)
    else
        redis.call('ZREM', K.key_ends(), id)
    end
end
return reply

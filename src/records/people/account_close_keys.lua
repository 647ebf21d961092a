#!lua flags=allow-oom
-- Revokes some of the active keys of an account that is being closed. When none are left, a last message carries the
-- barrier: it comes behind the invalidations of all keys, so one barrier covers them.
-- ARGV: prefix, account, source {actor, ip, request_id, events_kept}, member (to acknowledge to; '-' for none), barrier
-- Returns: ok, how many were revoked, whether that was all (1 or 0), lease_max, registry (member, what it holds, ...);
--   conflict: it is not being closed
-- Event: <kind>.revoked, for each

local KEYS_MAX = 100

if account_status(account) ~= 'closing' then
    return {'conflict'}
end
local records, registry = {}, redis.call('HGETALL', K.nodes())
for _, class in ipairs({'ak-live', 'ak-test', 'dk'}) do
    local active, left = K.account_keys(account, class .. ':active'), KEYS_MAX - #records
    for _, id in ipairs(left > 0 and redis.call('ZRANGE', active, 0, left - 1) or {}) do
        records[#records + 1] = key_record(id) or error('there is no record of ' .. id)
    end
end
keys_revoke(records, source, '-', '-', registry)
if #records == KEYS_MAX then
    return {'ok', #records, 0, 0, {}}
end
suspended_put(account, redis.call('HGET', K.account(account), 'suspended'), member, barrier)
return {'ok', #records, 1, tonumber(redis.call('GET', K.lease_max()) or '0'), registry}

#!lua flags=allow-oom
-- Revokes some of the active keys of an account that is being closed. When none are left, a last message carries the
-- barrier: it comes behind the invalidations of all keys, so one barrier covers them.
-- ARGV: prefix, account, actor, ip, request id, events to keep, member to acknowledge to ('-' for none), barrier
-- Returns: ok, how many were revoked, whether that was all (1 or 0), lease_max, registry (member, what it holds, ...);
--   conflict: it is not being closed
-- Event: <kind>.revoked, for each

local KEYS_MAX = 100

local account = ARGV[2]
if account_status(account) ~= 'closing' then
    return {'conflict'}
end
local revoked = 0
for _, class in ipairs({'ak-live', 'ak-test', 'dk'}) do
    local active = K.account_keys(account, class .. ':active')
    for _, id in ipairs(redis.call('ZRANGE', active, 0, KEYS_MAX - revoked - 1)) do
        key_revoke(key_record(id), source_from(3), '-', '-')
        revoked = revoked + 1
    end
    if revoked == KEYS_MAX then
        return {'ok', revoked, 0, 0, {}}
    end
end
suspended_put(account, redis.call('HGET', K.account(account), 'suspended'), ARGV[7], ARGV[8])
return {'ok', revoked, 1, tonumber(redis.call('GET', K.lease_max()) or '0'), redis.call('HGETALL', K.nodes())}

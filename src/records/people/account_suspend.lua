#!lua flags=allow-oom
-- Suspends an account: no node accepts its keys and sessions, which stay as they are. Publishes every time, because a
-- node may have missed an earlier message.
-- ARGV: prefix, account, source {actor, ip, request_id, events_kept}, member (to acknowledge to; '-' for none),
--   barrier, closes (whether it begins the closing of the account, '1' or '0')
-- Returns: ok, name, suspended since, whether it was before (1 or 0), lease_max, registry (member, what it holds, ...);
--   not_found; refused: nodes of earlier versions may still serve, which know no suspended accounts; conflict: the
--   account is closed
-- Event: account.suspended, the first time

local a = redis.call('HMGET', K.account(account), 'name', 'suspended', 'closed')
if not a[1] then
    return {'not_found'}
end
if a[3] then
    return {'conflict'}
end
if not schema_knows_suspensions() then
    return {'refused'}
end
local since = a[2] or string.format('%.0f', now_ms())
suspended_put(account, since, member, barrier)
if not a[2] then
    ending_note(account, account, 'people', audit(account, 'account.suspended', account, source))
end
if closes == '1' then
    redis.call('HSETNX', K.account(account), 'closing', since)
end
return {'ok', a[1], since, a[2] and 1 or 0, tonumber(redis.call('GET', K.lease_max()) or '0'),
        redis.call('HGETALL', K.nodes())}

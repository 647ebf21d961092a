#!lua flags=allow-oom
-- Revokes a key, for ever. Once `revoked` is set nothing changes it. The invalidation is published each time, for a
-- node may have missed an earlier one.
-- ARGV: prefix, id, account ('' any), kind ('' any), test only ('1' or '0'), actor, ip, request id, events kept,
--   discard ('1': of an unknown id the insertion may still be on its way, and is to find the id taken; or '0'),
--   member that nodes shall acknowledge to ('-': none), barrier, the actor's credential
-- Returns: ok, key record as after, whether it was revoked before (1 or 0), lease_max, registry (member, what it holds,
--   ...): who may still remember the key; not_found: unknown, or hidden from the view; as actor_refused()
-- Event: <kind>.revoked, the first time

local DISCARD_KEPT_S = 86400

local refused = actor_refused(ARGV[13], ARGV[6], ARGV[3])
if refused then
    return refused
end
local id = ARGV[2]
local record, digest = key_record(id)
if not record and ARGV[10] == '1' then
    redis.call('SET', K.key_id(id), '', 'EX', DISCARD_KEPT_S)
end
if not record or not key_visible(record, ARGV[3], ARGV[4], ARGV[5]) then
    return {'not_found'}
end
-- Before anything is written: it fails where Redis' user may not publish.
redis.call('PUBLISH', K.invalidations(), digest .. ' ' .. ARGV[11] .. ' ' .. ARGV[12])
local again = record.revoked and 1 or 0
if again == 0 then
    record.revoked = string.format('%.0f', math.max(tonumber(record.created), now_ms()))
    redis.call('SET', K.key(digest), key_pack(record))
    redis.call('ZREM', K.account_keys(record.account, key_set(record.kind, record.mode, 'active')), id)
    redis.call('ZADD', K.account_keys(record.account, key_set(record.kind, record.mode, 'revoked')), 0, id)
    audit(record.account, record.kind .. '.revoked', id, source_from(6), audit_class(record, ARGV[6]))
end
return {'ok', key_reply(record), again, tonumber(redis.call('GET', K.lease_max()) or '0'),
        redis.call('HGETALL', K.nodes())}

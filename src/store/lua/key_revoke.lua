#!lua flags=allow-oom
-- Revokes a key for ever. No script clears `revoked`. Publishes the invalidation every time, because a node may have
-- missed an earlier one.
-- ARGV: prefix, id, account ('' for any), kind ('' for any), test only ('1' or '0'), actor, ip, request id, events to
--   keep, discard ('1': if the id is unknown, its insertion may still arrive and must then find the id taken; or '0'),
--   member to acknowledge to ('-' for none), barrier, the actor's credential
-- Returns: ok, key after the change, whether it was revoked before (1 or 0), lease_max, registry (member, what it
--   holds, ...) of those who may still cache the key; not_found: unknown, or hidden by the view; as actor_refused()
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
-- Before any write, because it fails if Redis' user may not publish.
redis.call('PUBLISH', K.invalidations(), digest .. ' ' .. ARGV[11] .. ' ' .. ARGV[12])
local again = record.revoked and 1 or 0
if again == 0 then
    record.revoked = string.format('%.0f', math.max(tonumber(record.created), now_ms()))
    redis.call('SET', K.key(digest), key_pack(record))
    redis.call('ZREM', K.account_keys(record.account, key_set(record.kind, record.mode, 'active')), id)
    redis.call('ZADD', K.account_keys(record.account, key_set(record.kind, record.mode, 'revoked')), 0, id)
    audit(record.account, record.kind .. '.revoked', id, source_from(6),
          {class = audit_class(record, ARGV[6])})
end
return {'ok', key_reply(record), again, tonumber(redis.call('GET', K.lease_max()) or '0'),
        redis.call('HGETALL', K.nodes())}

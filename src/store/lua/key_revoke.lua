#!lua flags=allow-oom
-- Revokes a key for ever.
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
local record = key_record(id)
if not record and ARGV[10] == '1' then
    redis.call('SET', K.key_id(id), '', 'EX', DISCARD_KEPT_S)
end
if not record or not key_visible(record, ARGV[3], ARGV[4], ARGV[5]) then
    return {'not_found'}
end
local again = key_revoke(record, source_from(6), ARGV[11], ARGV[12])
return {'ok', key_reply(record), again and 1 or 0, tonumber(redis.call('GET', K.lease_max()) or '0'),
        redis.call('HGETALL', K.nodes())}

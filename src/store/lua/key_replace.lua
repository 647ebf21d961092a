#!lua
-- Adds a key that replaces another one, which ends a while later. If a key replaces it, the new one has no later end than
-- either had of its own.
-- ARGV: prefix, digest, key record, actor, ip, request id, events to keep, the actor's credential, limits of
--   keys_are_full(), most changes per minute, id of the key that is replaced, its account, kind ('' for any), test only
--   ('1' or '0'), member to acknowledge to ('-' for none), barrier, after how many ms it ends (unless it ends sooner),
--   what the node knows of the store's time (store_ms_within() in the prelude)
-- Returns: ok, the replaced key after the change, lease_max, registry (member, what it holds, ...) of those who may still
--   cache it as one that does not end, the store's time; not_found: it is unknown, or hidden by the view; refused: it
--   is revoked; suspended, conflict, full: as key_insert.lua; as actor_refused(); as limit_refused();
--   as leaving_refused()
-- Events: <kind>.created; <kind>.revocation_scheduled, or <kind>.revoked if it ends at once

local actor, credential, keys_max, changes_max = ARGV[4], ARGV[8], ARGV[9], tonumber(ARGV[10])
local new, source = key_unpack(ARGV[3]), source_from(4)
local refused = actor_refused(credential, actor, new.account)
if refused then
    return refused
end
local old = key_record(ARGV[11])
if not old or not key_visible(old, ARGV[12], ARGV[13], ARGV[14]) then
    return {'not_found'}
end
local now, now_at_most = store_ms_within(ARGV[18])
key_judge_end(old, now)
if old.revoked then
    return {'refused'}
end
refused = limit_refused(actor, new.account, new.mode, changes_max) or leaving_refused(new)
if refused then
    return refused
end
if keys_are_full(new.account, new.kind, new.mode, keys_max) then
    return {'full'}
end
-- Before it is published: a node keeps what it hears of, and would repeat an end that never was.
refused = key_add_refusal(ARGV[2], new)
if refused then
    return {refused == 'refused' and 'not_found' or refused}
end
local ends = nil -- it is revoked now
if ARGV[17] ~= '0' then
    ends = string.format('%.0f', now_at_most + tonumber(ARGV[17])) -- not shorter than it was asked for
    ends = old.ends and tonumber(old.ends) <= tonumber(ends) and old.ends or ends
end
local maker, registry = actor_key(credential), redis.call('HGETALL', K.nodes())
keys_publish({old}, ARGV[15], ARGV[16], registry, ends)
key_add(ARGV[2], ARGV[3], source, {replaces = old.id}, maker and {maker, old})
limit_count(actor, new.account, new.mode, changes_max)
keys_made_count(new.account, new.kind, new.mode)
if ends then
    if ends ~= old.ends then
        key_end_replaces(old, ends)
    end
    key_end_at(old, ends, source, now, {replaced_by = new.id})
else
    key_mark(old, source, {replaced_by = new.id})
end
return {'ok', key_reply(old), tonumber(redis.call('GET', K.lease_max()) or '0'), registry, now}

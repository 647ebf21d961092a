#!lua
-- Adds a key that replaces another one, which ends a while later, so that one of them is accepted at any time although
-- the answer may be lost. It may be repeated while the other one lives: an earlier successor that no node has accepted is
-- revoked, and the end moves no later. If a key replaces it, the new one has no later end than either had of its own.
-- ARGV: prefix, digest, text (the new key's record), source {actor, ip, request_id, events_kept}, credential (the
--   actor's), keys_max (limits, as for keys_are_full()), #changes_max (per minute), id (of the key that is replaced),
--   account (its account), kind ('' for any), test_only ('1' or '0'), member (to acknowledge to; '-' for none),
--   barrier, #overlap (after how many ms it ends, unless it ends sooner; at the earliest after a minute; 0: also as
--   soon as a node accepts the new key, see key_confirm.lua), known (what the node knows of the store's time, as for
--   store_ms_within() in the prelude), replaced_by (the key that had replaced it when the caller looked; '' for none)
-- Returns: ok, the replaced key after the change, lease_max, registry (member, what it holds, ...) of those who may still
--   cache it as one that does not end, the store's time, an earlier successor that was revoked, if any; not_found: it is unknown, or hidden by
--   the view; refused: it is revoked; refused, id: that key has replaced it, and was accepted; refused, again: another one
--   has replaced it since the caller looked, so this may be a request that was given up and repeated, and must not take
--   the secret away that the repetition has shown; suspended, conflict, full:
--   as key_insert.lua; as actor_refused(); as limit_refused(); as leaving_refused()
-- Events: <kind>.created; <kind>.revocation_scheduled; <kind>.revoked of an earlier successor

local LEAST_MS = 60000 -- whoever got no answer has that long to repeat it

local new = key_unpack(text)
local refused = actor_refused(credential, actor, new.account)
if refused then
    return refused
end
local old = key_record(id)
if not old or not key_visible(old, account, kind, test_only) then
    return {'not_found'}
end
local now, now_at_most = store_ms_within(known)
key_judge_end(old, now)
if old.revoked then
    return {'refused'}
end
local by = key_end_line(old).by
if by ~= (replaced_by ~= '' and replaced_by or '-') then
    return {'refused', 'again'}
end
local did, earlier = pcall(key_record, by)
earlier = did and earlier and not earlier.revoked and earlier or nil
if earlier and key_in_use(earlier) then
    return {'refused', earlier.id}
end
refused = limit_refused(actor, new.account, new.mode, changes_max) or leaving_refused(new)
if refused then
    return refused
end
if keys_are_full(new.account, new.kind, new.mode, keys_max, true) then
    return {'full'}
end
-- Before it is published: a node keeps what it hears of, and would repeat an end that never was.
refused = key_add_refusal(digest, new)
if refused then
    return {refused == 'refused' and 'not_found' or refused}
end
local ends = string.format('%.0f', now_at_most + math.max(overlap, LEAST_MS)) -- not shorter than it was asked for
ends = old.ends and tonumber(old.ends) <= tonumber(ends) and old.ends or ends
old.replaced = true
local maker, registry = actor_key(credential), redis.call('HGETALL', K.nodes())
keys_publish({old, earlier}, member, barrier, registry, {[old.id] = ends})
local packed = text .. '\nconfirm=' .. (overlap == 0 and 'now' or 'later')
key_add(digest, packed, source, {replaces = old.id}, maker and {maker, old})
if earlier then
    key_mark(earlier, source, {reason = 'not_accepted', replaced_by = new.id})
end
limit_count(actor, new.account, new.mode, changes_max)
keys_made_count(new.account, new.kind, new.mode)
key_end_replaces(old, ends, new.id)
key_end_at(old, ends, source, now, {replaced_by = new.id})
return {'ok', key_reply(old), tonumber(redis.call('GET', K.lease_max()) or '0'), registry, now,
        earlier and key_reply(earlier)}

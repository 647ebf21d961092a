#!lua flags=allow-oom
-- Says when a key will be revoked, or that it will not.
-- ARGV: prefix, id, account ('' for any), kind ('' for any), test_only ('1' or '0'), source {actor, ip, request_id,
--   events_kept}, credential (the actor's), member (to acknowledge to; '-' for none), barrier, at (the time in ms; ''
--   for never), #most (how many ms ahead it may be), which (changes: sooner, than before, or any), #changes_max (per
--   minute), known (what the node knows of the store's time, as for store_ms_within() in the prelude)
-- Returns: ok, key after the change, lease_max, registry (member, what it holds, ...) of those who may still cache the
--   key as one that does not end, the store's time; not_found: unknown, or hidden by the view; conflict: it is revoked;
--   refused, why: past, far, or later (than before); as actor_refused(); as limit_refused()
-- Event: <kind>.revocation_scheduled or <kind>.revocation_withdrawn, unless nothing changes

local refused = actor_refused(credential, actor, account)
if refused then
    return refused
end
local record = key_record(id)
if not record or not key_visible(record, account, kind, test_only) then
    return {'not_found'}
end
local now = store_ms_within(known)
key_judge_end(record, now)
if record.revoked then
    return {'conflict'}
end
local ends = at ~= '' and at or nil
local is_later = record.ends and (not ends or tonumber(ends) > tonumber(record.ends))
if ends and tonumber(ends) <= now then
    return {'refused', 'past'}
elseif ends and tonumber(ends) - now > most then
    return {'refused', 'far'}
elseif is_later and which == 'sooner' then
    return {'refused', 'later'}
end
-- The first time of a key is like its revocation, which is never limited. What may change often must not push out other
-- events and invalidations.
local is_changed = record.ends and ends ~= record.ends
refused = is_changed and limit_refused(actor, record.account, record.mode, changes_max)
if refused then
    return refused
end
-- Said by somebody, it is no longer only what a replacement has set, nor withdrawn with it.
local line = key_end_line(record)
if ends and line.set == ends then
    line.set, line.before = '-', '-'
    key_end_line_put(record, line)
    redis.call('SET', K.key(record.digest), key_pack(record))
end
record.said = ends == record.ends and line.said or nil
local registry = redis.call('HGETALL', K.nodes())
keys_publish({record}, member, barrier, registry, {[record.id] = ends or ''})
if is_changed then
    limit_count(actor, record.account, record.mode, changes_max)
end
key_end_at(record, ends, source, now)
return {'ok', key_reply(record), tonumber(redis.call('GET', K.lease_max()) or '0'), registry,
        now}

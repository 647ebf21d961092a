#!lua flags=allow-oom
-- Says when a key will be revoked, or that it will not.
-- ARGV: prefix, id, account ('' for any), kind ('' for any), test only ('1' or '0'), actor, ip, request id, events to
--   keep, the actor's credential, member to acknowledge to ('-' for none), barrier, the time in ms ('' for never), how
--   many ms ahead it may be, which changes: sooner (than before) or any, most changes per minute, what the node knows of
--   the store's time (store_ms_within() in the prelude)
-- Returns: ok, key after the change, lease_max, registry (member, what it holds, ...) of those who may still cache the
--   key as one that does not end, the store's time; not_found: unknown, or hidden by the view; conflict: it is revoked;
--   refused, why: past, far, or later (than before); as actor_refused(); as limit_refused()
-- Event: <kind>.revocation_scheduled or <kind>.revocation_withdrawn, unless nothing changes

local refused = actor_refused(ARGV[10], ARGV[6], ARGV[3])
if refused then
    return refused
end
local record = key_record(ARGV[2])
if not record or not key_visible(record, ARGV[3], ARGV[4], ARGV[5]) then
    return {'not_found'}
end
local now = store_ms_within(ARGV[17])
key_judge_end(record, now)
if record.revoked then
    return {'conflict'}
end
local ends, most, which = ARGV[13] ~= '' and ARGV[13] or nil, tonumber(ARGV[14]), ARGV[15]
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
local is_changed, changes_max = record.ends and ends ~= record.ends, tonumber(ARGV[16])
refused = is_changed and limit_refused(ARGV[6], record.account, record.mode, changes_max)
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
keys_publish({record}, ARGV[11], ARGV[12], registry, {[record.id] = ends or ''})
if is_changed then
    limit_count(ARGV[6], record.account, record.mode, changes_max)
end
key_end_at(record, ends, source_from(6), now)
return {'ok', key_reply(record), tonumber(redis.call('GET', K.lease_max()) or '0'), registry,
        now}

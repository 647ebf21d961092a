#!lua flags=allow-oom
-- Notes that a node has accepted a key that replaces another one: so its secret has arrived. If the other one was to end
-- at once, it is revoked.
-- ARGV: prefix, id, events_kept, known (what the node knows of the store's time, as for store_ms_within() in the
--   prelude)
-- Returns: ok, and the other key, if this has revoked it; not_found: no such key
-- Event: <kind>.revoked of the other key, with the reason `replaced`

local new = key_record(id)
if not new then
    return {'not_found'}
end
local now = store_ms_within(known)
key_judge_end(new, now)
local what = key_confirm(new)
if not what or new.revoked then
    return {'ok'}
end
local old = key_replaced(new)
old = what == 'now' and old and key_end_is_replaced(old, key_end_line(old)) and old or nil
if old then
    keys_publish({old}, '-', '-', redis.call('HGETALL', K.nodes()))
end
key_confirm_put(new, nil)
redis.call('SET', K.key(new.digest), key_pack(new))
if not old then
    return {'ok'}
end
key_mark(old, {'system', '', '', events_kept}, {reason = 'replaced', replaced_by = new.id})
return {'ok', key_reply(old)}

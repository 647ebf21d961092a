#!lua flags=allow-oom
-- Revokes keys for ever, each on behalf of its own actor. All are checked before anything is published or written. One
-- that is refused, or whose record is malformed, leaves the others alone.
-- ARGV: prefix, events_kept, discard ('1' or '0'), member (to acknowledge to; '-' for none), barrier, keys... {id,
--   account ('' for any), kind ('' for any), test only ('1' or '0'), actor, ip, request id, the actor's credential}
-- discard: their secrets reached nobody. If an id is unknown, its insertion may still arrive and must then find the id
--   taken. The end that a replacement has set is withdrawn with it, but a replacement that a node has accepted is left alone.
-- Returns: ok, lease_max, registry (member, what it holds, ...) of those who may still cache the keys, and for each key:
--   {ok, key after the change, whether it was revoked before (1 or 0)}, for a discard also the key whose end was withdrawn
--   with it, if any, and the store's time; {not_found}: unknown, or hidden by the view; as
--   actor_refused(); {failed, error}. refused: the same, but no key was revoked, so there is no registry
-- Events: <kind>.revoked, the first time for each; <kind>.revocation_withdrawn, or .revocation_scheduled for the end that
--   stood before, of the key that a discarded one was to replace

local DISCARD_KEPT_S = 86400

-- By id. `ends` has those that this call will have revoked when it comes to the present one.
local records, ends = {}, {}

-- Returns the record; or nil and what to reply.
local function check(at)
    local id, account, actor, credential = ARGV[at], ARGV[at + 1], ARGV[at + 4], ARGV[at + 7]
    local refused = actor_refused(credential, actor, account)
    if not refused and credential ~= '' and ends[actor] then
        refused = {'actor_revoked'}
    end
    if refused then
        return nil, refused
    end
    records[id] = records[id] or key_record(id)
    if not records[id] and discard == '1' then
        redis.call('SET', K.key_id(id), '', 'EX', DISCARD_KEPT_S)
    end
    if not records[id] or not key_visible(records[id], account, ARGV[at + 2], ARGV[at + 3]) then
        return nil, {'not_found'}
    end
    if discard == '1' and key_field(records[id], 'replaces') and key_in_use(records[id]) then
        return nil, {'not_found'}
    end
    return records[id]
end

-- Of a key that is discarded: the one that it was to replace, if it has set that one's end, and the end that stood before
-- ('': none).
local function withdrawal(record)
    local old = discard == '1' and key_replaced(record)
    local line = old and key_end_line(old)
    if not old or line.set ~= old.ends then
        return nil
    end
    return old, line.before ~= '-' and line.before or ''
end

local function mark(record, at)
    local again = key_mark(record, {ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], events_kept})
    return {'ok', key_reply(record), again and 1 or 0}
end

local function failed(why)
    return {'failed', type(why) == 'table' and why.err or tostring(why)}
end

local checked, replies, published = {}, {}, {}
for at = FIRST, #ARGV, EACH do
    local did, record, refusal = pcall(check, at)
    replies[#replies + 1] = did and (refusal or {}) or failed(record)
    if did and record then
        checked[#checked + 1] = {record, at, #replies}
        if not ends[record.id] then
            ends[record.id] = true
            published[#published + 1] = record
        end
    end
end
if #checked == 0 then
    return {'refused', 0, {}, unpack(replies)}
end
local registry, stand, withdrawn = redis.call('HGETALL', K.nodes()), {}, {}
for _, c in ipairs(checked) do
    local old, before = withdrawal(c[1])
    if old then
        published[#published + 1], withdrawn[#withdrawn + 1], stand[old.id] = old, old, before
        c[4] = old
    end
end
keys_publish(published, member, barrier, registry, stand)
for _, old in ipairs(withdrawn) do
    local source = {ARGV[FIRST + 4], ARGV[FIRST + 5], ARGV[FIRST + 6], events_kept}
    key_end_line_put(old, {said = key_end_line(old).said, set = '-', before = '-', by = '-'})
    key_end_at(old, stand[old.id] ~= '' and stand[old.id] or nil, source, store_ms(),
               {reason = 'not_delivered'})
end
for _, c in ipairs(checked) do
    local did, reply = pcall(mark, c[1], c[2])
    if did and c[4] then
        reply[4], reply[5] = key_reply(c[4]), store_ms()
    end
    replies[c[3]] = did and reply or failed(reply)
end
return {'ok', tonumber(redis.call('GET', K.lease_max()) or '0'), registry, unpack(replies)}

#!lua flags=allow-oom
-- Repeats what a node has heard of at a Redis that may have lost it (src/lease/README.md, rule 13). Nodes repeat the same
-- changes. Once a node has told a change completely, it is skipped when others tell it.
-- ARGV: prefix, endings... {id of the key or account, what, since when or when in ms, change, completes (1: the
--   last of its change; else 0)}
-- what: 'r': revoked; 'e': it will be; 'p': likewise, by a replacement; 'n': it will not be; 's': the account is suspended;
--   '-': it was overtaken. when: of e, p and n with ':<said>', when that was said: the later counts. change:
--   '<maker>:<number>' of the change ('' for none).
-- Returns: ok, how many this Redis had lost, how many endings are still missing, how many are of keys that it does not
--   know, how many were skipped
-- Events: <kind>.revoked, <kind>.revocation_scheduled or account.suspended, with the reason `repeated`, for each that was lost

local EVENTS_KEPT = '1000000000000' -- the next event's own bound applies
local SOURCE = {'system', '', '', EVENTS_KEPT}

local lost, unknown, skipped = 0, 0, 0

local function names()
    local changes = {}
    for at = FIRST, #ARGV, EACH do
        changes[#changes + 1] = ARGV[at + 3]
    end
    return changes
end

local function suspend(account)
    local a = redis.call('HMGET', K.account(account), 'name', 'suspended', 'closed')
    if not a[1] or a[2] or a[3] or not schema_knows_suspensions() then
        return
    end
    lost = lost + 1
    suspended_put(account, string.format('%.0f', now_ms()), '-', '-')
    ending_note(account, account, 'people',
                audit(account, 'account.suspended', account, SOURCE, {data = {reason = 'repeated'}}))
end

-- Two histories may have said at once when a key ends: then the sooner counts.
local function is_known(record, at, said)
    local known = key_end_line(record).said
    if known ~= said then
        return known > said
    end
    return not at or record.scheduled and tonumber(record.scheduled) <= tonumber(at)
end

-- at: nil: never. replaced: by a replacement, of which this Redis knows nothing. So the end is not handed on, even if the
-- request is repeated.
local function schedule(id, at, said, replaced, registry)
    local record = key_records({id})[1]
    if not record then
        unknown = unknown + 1
        return
    end
    if record.revoked and not record.is_due or is_known(record, at, said) then
        return
    end
    lost = lost + 1
    record.revoked, record.is_due, record.said = nil, nil, said -- that was by another time
    record.ends, record.replaced = record.scheduled, replaced
    if replaced then
        key_end_replaces(record, at, '-')
    end
    keys_publish({record}, '-', '-', registry, {[id] = at or ''})
    key_end_at(record, at, SOURCE, store_ms(), {reason = 'repeated'})
end

-- since: by id. times: by id, how many endings are of that key.
local function revoke(ids, since, times, registry)
    local records, were_lost, ends = key_records(ids), {}, ends_begin()
    for _, id in ipairs(ids) do
        unknown = unknown + times[id]
    end
    for _, record in ipairs(records) do
        unknown = unknown - times[record.id]
        if record.is_due or not record.revoked then
            record.revoked, record.is_due = since[record.id], nil
            were_lost[#were_lost + 1] = record
        end
    end
    if #were_lost == 0 then
        return
    end
    lost = lost + #were_lost
    keys_publish(were_lost, '-', '-', registry)
    for _, record in ipairs(were_lost) do
        record.revoked = nil
        key_mark(record, SOURCE, {reason = 'repeated'}, since[record.id], ends)
        if record.scheduled then
            redis.call('ZREM', K.key_ends(), record.id)
        end
    end
    ends_write(ends)
end

local is_told, registry = redis.call('SMISMEMBER', K.told(), unpack(names())), redis.call('HGETALL', K.nodes())
local revoked, since, times, others, whole = {}, {}, {}, {}, {}
for at = FIRST, #ARGV, EACH do
    local id, what, change = ARGV[at], ARGV[at + 1], ARGV[at + 3]
    if is_told[(at - FIRST) / EACH + 1] == 1 then
        skipped = skipped + 1
    else
        if what == 'r' then
            if not since[id] then
                revoked[#revoked + 1], since[id] = id, ARGV[at + 2]
            end
            times[id] = (times[id] or 0) + 1
        elseif what == 's' or what == 'e' or what == 'p' or what == 'n' then
            others[#others + 1] = at
        end
        if ARGV[at + 4] == '1' then
            whole[#whole + 1] = change
        end
    end
end
if #revoked > 0 then
    revoke(revoked, since, times, registry)
end
for _, at in ipairs(others) do
    if ARGV[at + 1] == 's' then
        suspend(ARGV[at])
    else
        local time, said = ARGV[at + 2]:match('^(%d+):(%d+)$')
        local what = ARGV[at + 1]
        schedule(ARGV[at], what ~= 'n' and time or nil, tonumber(said), what == 'p', registry)
    end
end
if #whole > 0 then
    redis.call('SREM', K.missing(), unpack(whole))
    redis.call('SADD', K.told(), unpack(whole))
end
told_keep()
local missing = redis.call('SCARD', K.missing())
if missing > 0 then
    redis.call('HSET', K.store(), 'missing', missing)
else
    redis.call('HDEL', K.store(), 'missing')
end
return {'ok', lost, missing, unknown, skipped}

#!lua flags=allow-oom
-- Repeats what a node has heard of at a Redis that may have lost it (src/lease/README.md, rule 13).
-- ARGV: prefix, then for each ending: id of the key or account, what ('r': revoked; 'e': it will be; 's': the account
--   is suspended; '-': it was overtaken), since when or when in ms, '<maker>:<number>' of the change ('' for none), whether the
--   change is told as a whole with it (1 or 0)
-- Returns: ok, how many this Redis had lost, how many endings are still missing, how many are of keys that it does not know
-- Events: <kind>.revoked, <kind>.revocation_scheduled or account.suspended, with the reason `repeated`, for each that was lost

local EVENTS_KEPT = '1000000000000' -- the next event's own bound applies
local SOURCE = {'system', '', '', EVENTS_KEPT}

local registry

local function publish(record, ends)
    registry = registry or redis.call('HGETALL', K.nodes())
    keys_publish({record}, '-', '-', registry, ends)
end

local lost, unknown = 0, 0

local function suspend(account)
    local a = redis.call('HMGET', K.account(account), 'name', 'suspended', 'closed')
    if not a[1] or a[2] or a[3] or not schema_knows_suspensions() then
        return false
    end
    suspended_put(account, string.format('%.0f', now_ms()), '-', '-')
    ending_note(account, account, 'people',
                audit(account, 'account.suspended', account, SOURCE, {data = {reason = 'repeated'}}))
    return true
end

-- Returns whether it was lost.
local function apply(id, what, at)
    if what == 's' then
        return suspend(id)
    end
    local did, record = pcall(key_record, id)
    if not did or not record then
        unknown = unknown + 1
        return false
    end
    if record.revoked and not record.is_due then
        return false
    end
    if what == 'r' then
        record.revoked, record.is_due = at, nil
        publish(record)
        record.revoked = nil
        key_mark(record, SOURCE, {reason = 'repeated'}, at)
        redis.call('ZREM', K.key_ends(), id)
        return true
    end
    if record.scheduled and tonumber(record.scheduled) <= tonumber(at) then
        return false
    end
    record.revoked, record.is_due = nil, nil -- that was by a later time
    publish(record, at)
    key_end_at(record, at, SOURCE, store_ms(), {reason = 'repeated'})
    return true
end

for i = 2, #ARGV, 5 do
    if ARGV[i + 1] ~= '-' and apply(ARGV[i], ARGV[i + 1], ARGV[i + 2]) then
        lost = lost + 1
    end
    if ARGV[i + 4] == '1' then
        redis.call('SREM', K.missing(), ARGV[i + 3])
    end
end
local missing = redis.call('SCARD', K.missing())
if missing > 0 then
    redis.call('HSET', K.store(), 'missing', missing)
else
    redis.call('HDEL', K.store(), 'missing')
end
return {'ok', lost, missing, unknown}

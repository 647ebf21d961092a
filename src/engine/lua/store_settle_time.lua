#!lua flags=allow-oom
-- An operator says that Redis' clock is right: the store's time is that clock from now on, and what members were told before
-- no longer counts. What is due by the time as it was must have been written down before (key_end_due.lua).
-- ARGV: prefix, new_settlement ('': only looks), actor
-- Returns: ok, by how many ms the time was ahead of the clock (below 0: behind), whether it was anything but the clock (1 or
--   0), how many revocations that are scheduled take effect at once, Redis' clock in ms; conflict: so many are due;
--   not_found: the store is empty
-- Event, of the whole store: store.time_settled

local EVENTS_KEPT = 10000

local id = redis.call('HGET', K.store(), 'id')
if not id then
    return {'not_found'}
end
local first, last, clock, seen = store_times()
first, last = math.max(first, seen), math.max(last, seen)
if not exists(K.key_ends()) then
    first, last = clock, clock
end
local due = redis.call('ZCOUNT', K.key_ends(), '-inf', first)
local ending = redis.call('ZCOUNT', K.key_ends(), '-inf', clock) - due
local is_other = (first ~= clock or last ~= clock) and 1 or 0
if new_settlement ~= '' and is_other == 1 then
    if first > clock and due > 0 then
        return {'conflict', due}
    end
    redis.call('HSET', K.store(), 'time', string.format('%.0f', clock), 'ahead', '0', 'unsure', '0',
               'settlement', new_settlement)
    audit_in(K.store_audit(), EVENTS_KEPT, '', 'people',
             {'type', 'store.time_settled', 'actor', actor, 'target', id, 'ip', '', 'request_id', '',
              'data:ahead_ms', string.format('%.0f', store_time_ahead(first, last, clock))})
end
return {'ok', store_time_ahead(first, last, clock), is_other, math.max(ending, 0), clock}

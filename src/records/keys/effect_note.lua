#!lua flags=allow-oom
-- The barrier of these revocations is over: since when no node accepts their keys, for their receipts. key_mark() in the
-- prelude has noted the event. The first note stays, because a barrier that is repeated ends later.
-- ARGV: prefix, keys... {id, account, when it was revoked, how many ms it took at most until the barrier was over, how
--   many ms ago that was at least, how many nodes were registered, for how many of them the barrier waited until their
--   leases had expired}
-- Returns: ok

local now = now_ms()

-- Of each account: ids, and for each the place of its arguments.
local ids, places = {}, {}
for at = FIRST, #ARGV, EACH do
    local account = ARGV[at + 1]
    ids[account] = ids[account] or {}
    places[account] = places[account] or {}
    table.insert(ids[account], ARGV[at])
    table.insert(places[account], at)
end

for account, of_account in pairs(ids) do
    local noted = redis.call('HMGET', K.key_endings(account), unpack(of_account))
    local fields = {}
    for i, at in ipairs(places[account]) do
        -- Of versions without receipts there is nothing.
        local event = noted[i] or '- -'
        if event:match('^%S+ %S+$') and not fields[ARGV[at]] then
            -- Never too early, because the barrier is over; nor if our clock went back since.
            local effective = string.format('%.0f', math.max(ARGV[at + 2] + ARGV[at + 3], now - ARGV[at + 4]))
            fields[ARGV[at]] = true
            table.insert(fields, ARGV[at])
            table.insert(fields, table.concat({event, effective, ARGV[at + 5], ARGV[at + 6]}, ' '))
        end
    end
    if #fields > 0 and not canary_owns(account) then
        redis.call('HSET', K.key_endings(account), unpack(fields))
    end
end
return {'ok'}

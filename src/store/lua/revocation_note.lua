#!lua flags=allow-oom
-- The barrier of these revocations is over: since when no node accepts their keys, for their receipts. key_mark() in the
-- prelude has noted the event. The first note stays, because a barrier that is repeated ends later.
-- ARGV: prefix, then for each key: id, account, when it was revoked, how many ms ago the barrier was over at least, how
--   many nodes were registered, for how many of them the barrier waited until their leases had expired
-- Returns: ok

local FIRST, EACH = 2, 6

local now = now_ms()
for at = FIRST, #ARGV, EACH do
    local id, account = ARGV[at], ARGV[at + 1]
    -- Of versions without receipts there is nothing.
    local noted = redis.call('HGET', K.key_endings(account), id) or '- -'
    if noted:match('^%S+ %S+$') and not canary_owns(account) then
        -- Never too early, because the barrier is over.
        local effective = string.format('%.0f', math.max(tonumber(ARGV[at + 2]), now - ARGV[at + 3]))
        redis.call('HSET', K.key_endings(account), id, table.concat({noted, effective, ARGV[at + 4], ARGV[at + 5]}, ' '))
    end
end
return {'ok'}

#!lua flags=allow-oom
-- Repeats suspensions at a Redis that has lost them. What is unknown or closed there needs none.
-- ARGV: prefix, version (that the set must have afterwards at least), accounts...
-- Returns: ok
-- Event: account.suspended, for each that was not

local EVENTS_KEPT = '1000000000000' -- the next event's own bound applies

for i = FIRST, #ARGV do
    local a = redis.call('HMGET', K.account(ARGV[i]), 'name', 'suspended', 'closed')
    if a[1] and not a[2] and not a[3] then
        suspended_put(ARGV[i], string.format('%.0f', now_ms()), '-', '-')
        ending_note(ARGV[i], ARGV[i], 'people',
                    audit(ARGV[i], 'account.suspended', ARGV[i], {'system', '', '', EVENTS_KEPT}))
    end
end
if tonumber(redis.call('HGET', K.store(), 'suspensions') or '0') < tonumber(version) then
    redis.call('HSET', K.suspended(), 'version', version)
    redis.call('HSET', K.store(), 'suspensions', version)
end
return {'ok'}

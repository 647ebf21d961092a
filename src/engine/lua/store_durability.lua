-- Notes whether the operator only asserts that acknowledged writes survive (--redis-durability). A change is an event in
-- the store's own trail, so nodes that start with what the store already notes add none.
-- ARGV: prefix, durability ('asserted' or 'observed'), actor
-- Returns: ok

local EVENTS_KEPT = 10000

if durability ~= (redis.call('HGET', K.store(), 'durability') or 'observed') then
    redis.call('HSET', K.store(), 'durability', durability)
    audit_in(K.store_audit(), EVENTS_KEPT, '', 'people',
             {'type', 'store.durability_' .. durability, 'actor', actor, 'target', redis.call('HGET', K.store(), 'id'),
              'ip', '', 'request_id', ''})
end
return {'ok'}

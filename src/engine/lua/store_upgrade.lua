#!lua flags=allow-oom
-- Raises the schema of the store. The new id makes nodes of earlier versions refuse at their next read or heartbeat.
-- Nodes that know this schema also know the former id, and go on.
-- ARGV: prefix, schema, new_id (of the store), actor
-- Returns: ok, whether it was raised (1 or 0), lease_max, registry (member, what it holds, ...); not_found: there is no
--   store
-- Event, of the whole store: store.upgraded

local EVENTS_KEPT = 10000

local id = redis.call('HGET', K.store(), 'id')
if not id then
    return {'not_found'}
end
local raised = 0
if tonumber(redis.call('GET', K.schema()) or '0') < tonumber(schema) then
    redis.call('HSET', K.store(), 'id', new_id, 'former', id)
    redis.call('SET', K.schema(), schema)
    audit_in(K.store_audit(), EVENTS_KEPT, '', 'people',
             {'type', 'store.upgraded', 'actor', actor, 'target', new_id, 'ip', '', 'request_id', '',
              'data:former', id, 'data:schema', schema})
    raised = 1
end
return {'ok', raised, tonumber(redis.call('GET', K.lease_max()) or '0'), redis.call('HGETALL', K.nodes())}

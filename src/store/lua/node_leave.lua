#!lua flags=allow-oom
-- Takes members out of the registry: a node itself once it has emptied its cache, others by a revoker that
-- has waited until their leases are over, and only if they did not send a heartbeat since.
-- ARGV: prefix, then for each member: its name, and what the registry must hold of it ('' anything)
-- Returns: ok, how many are gone

local gone = 0
for i = 2, #ARGV, 2 do
    local held = redis.call('HGET', K.nodes(), ARGV[i])
    if held and (ARGV[i + 1] == '' or ARGV[i + 1] == held) then
        gone = gone + redis.call('HDEL', K.nodes(), ARGV[i])
    end
end
return {'ok', gone}

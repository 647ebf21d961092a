#!lua flags=allow-oom
-- Removes members from the registry. A node removes itself after emptying its cache. A revoker removes others after
-- waiting until their leases have expired, and only if they sent no heartbeat since.
-- ARGV: prefix, then for each member: its name, and what the registry must hold for it ('' for anything)
-- Returns: ok, how many were removed

local gone = 0
for i = 2, #ARGV, 2 do
    local held = redis.call('HGET', K.nodes(), ARGV[i])
    if held and (ARGV[i + 1] == '' or ARGV[i + 1] == held) then
        gone = gone + redis.call('HDEL', K.nodes(), ARGV[i])
    end
end
return {'ok', gone}

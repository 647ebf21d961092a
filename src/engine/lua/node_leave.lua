#!lua flags=allow-oom
-- Changes what the registry holds for members, or removes them. A node removes itself after emptying its cache. A revoker
-- that has waited in vain for others marks their entries. If it was given a marked entry, it has now waited until that
-- member's leases have expired, and removes it, unless the member has written its entry since.
-- ARGV: prefix, then for each member: its name, what the registry must hold for it ('' for anything), and what it is to
--   hold instead ('': nothing)
-- Returns: ok, how many were removed

local gone = 0
for i = 2, #ARGV, 3 do
    local member, wanted, instead = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local held = redis.call('HGET', K.nodes(), member)
    if held and (wanted == '' or wanted == held) then
        if instead ~= '' then
            redis.call('HSET', K.nodes(), member, instead)
        else
            gone = gone + redis.call('HDEL', K.nodes(), member)
            redis.call('HDEL', K.tellers(), member)
        end
    end
end
return {'ok', gone}

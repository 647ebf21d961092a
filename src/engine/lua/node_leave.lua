#!lua flags=allow-oom
-- Changes what the registry holds for members, or removes them. A node removes itself after emptying its cache. A revoker
-- that has waited in vain for others marks their entries. If it was given a marked entry, it has now waited until that
-- member's leases have expired, and removes it, unless the member has written its entry since.
-- ARGV: prefix, members... {name, what the registry must hold for it ('' for anything), what it is to hold instead ('':
--   nothing)}
-- Returns: ok, how many were removed

local gone = 0
for i = FIRST, #ARGV, EACH do
    local member, wanted, instead = unpack(ARGV, i, i + EACH - 1)
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

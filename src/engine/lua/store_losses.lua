-- What this Redis has lost as far as nodes know, and what keeps them from knowing (src/lease/README.md, rule 13).
-- ARGV: prefix
-- Returns: ok, how many endings are missing, how many other changes were lost since an operator last accepted a loss, how
--   many members are of versions that do not tell what they have heard, how many nodes listen although there is no store
--   (-1: this user may not ask)

-- Of nodes that lost their store under them nothing else is left here. Those that wait for a first account listen too.
local function listeners()
    if exists(K.accounts()) or redis.call('HEXISTS', K.store(), 'id') == 1 then
        return 0
    end
    local reply = redis.pcall('PUBSUB', PUBLISH == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', K.invalidations())
    return reply.err and -1 or tonumber(reply[2])
end

local earlier = 0
for _, entry in ipairs(redis.call('HVALS', K.nodes())) do
    if tonumber(entry:match('^%S+ %d+ (%d+)$') or '1') < READS_ENDINGS then
        earlier = earlier + 1
    end
end
local there = redis.call('HMGET', K.store(), 'missing', 'lost_changes')
return {'ok', tonumber(there[1] or '0'), tonumber(there[2] or '0'), earlier, listeners()}

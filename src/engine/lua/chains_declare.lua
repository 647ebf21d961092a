#!lua flags=allow-oom
-- A node knows of changes that this Redis has lost. From then on no node decides anything by it, until those that end
-- something were told again (endings_tell.lua) or their loss was accepted. The others are counted: nobody can repeat them.
-- Nothing is declared in an era in which an operator has accepted the loss.
-- ARGV: prefix, chains... {maker, ends, all}
-- Returns: ok, how many endings are missing

-- Of one chain; more than that are one member of the set, which nobody can tell.
local NUMBERS_MAX = 65536

local function declare(maker, first, last)
    if last - first >= NUMBERS_MAX then
        redis.call('SADD', K.missing(), string.format('%s:%.0f-%.0f', maker, first, last - NUMBERS_MAX))
        first = last - NUMBERS_MAX + 1
    end
    for i = 0, last - first do -- beyond 2^53, where a number and the next are one, this ends, too
        redis.call('SADD', K.missing(), string.format('%s:%.0f', maker, first + i))
    end
end

local eras = redis.call('HMGET', K.store(), 'era', 'accepted_era')
for i = FIRST, eras[1] and eras[1] == eras[2] and 0 or #ARGV, EACH do
    local maker, ends, all = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
    local ends_there, all_there, low = chain_read(maker)
    local others = (all - ends) - (all_there - ends_there)
    if ends > ends_there then
        declare(maker, ends_there + 1, ends)
        low = low == '-' and string.format('%.0f', ends_there + 1) or low
    end
    if others > 0 then
        redis.call('HINCRBY', K.store(), 'lost_changes', others)
    end
    if ends > ends_there or others > 0 then
        ends_there = math.max(ends, ends_there)
        chain_write(maker, ends_there, math.max(all, all_there, ends_there), low)
    end
end
-- A node may have told a change before another one knew that it was acknowledged.
if exists(K.told()) then
    redis.call('SDIFFSTORE', K.missing(), K.missing(), K.told())
end
local missing = redis.call('SCARD', K.missing())
if missing > 0 then
    redis.call('HSET', K.store(), 'missing', missing)
end
return {'ok', missing}

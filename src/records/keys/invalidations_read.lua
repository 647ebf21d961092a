-- Invalidations that were logged after one of them, oldest first. That one must still be there: otherwise others that
-- came after it may be missing too, because the log was cut, or this Redis has lost something.
-- ARGV: prefix, from (a position; '': the newest; '0-0': before the first), #most (entries wanted)
-- Returns: ok, position of the last one returned, whether there are more (0 or 1), {position, {field, value...}}...;
--   refused, position of the newest: some are missing

local log = K.invalidation_log()

-- Whether no entry was ever cut off.
local function is_whole()
    if redis.call('EXISTS', log) == 0 then
        return true
    end
    local facts = redis.call('XINFO', 'STREAM', log)
    local counts = {}
    for i = 1, #facts, 2 do
        counts[facts[i]] = facts[i + 1]
    end
    return counts['entries-added'] == counts['length']
end

if from == '' then
    return {'ok', invalidations_last(), 0}
end
local entries
if from == '0-0' then
    entries = redis.call('XRANGE', log, '-', '+', 'COUNT', most + 1)
    if not is_whole() then
        return {'refused', invalidations_last()}
    end
else
    entries = redis.call('XRANGE', log, from, '+', 'COUNT', most + 2)
    if not entries[1] or entries[1][1] ~= from then
        return {'refused', invalidations_last()}
    end
    table.remove(entries, 1)
end
local reply = {'ok', from, #entries > most and 1 or 0}
for i = 1, math.min(most, #entries) do
    reply[i + 3] = entries[i]
    reply[2] = entries[i][1]
end
return reply

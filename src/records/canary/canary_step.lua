#!lua flags=allow-oom
-- The node that runs the canary goes on to the next phase, unless another node has taken over meanwhile.
-- ARGV: prefix, node, process, run, phase ('ask', if the revocation was answered, or 'over'), effect_us (how long the
--   revocation took), why (the run could not be finished; '' if it was)
-- Returns: ok; refused: another run, or another node runs it

local now, canary = now_ms(), hash_read(K.canary())

-- Of the nodes that used the key: how many refused it when they were asked, how many accepted it, how many did not
-- answer; and the last one to refuse it.
local function tally()
    local found = {refused = 0, accepted = 0, silent = 0, slowest = '', slowest_ms = -1}
    local counted_as = {asked = 'refused', violated = 'accepted', used = 'silent', refused = 'silent'}
    for name, packed in pairs(hash_read(K.canary_nodes())) do
        local there = canary_node_read(packed)
        if there and there.run == tonumber(run) then
            local what, effect = counted_as[there.state], tonumber(there.effect) or -1
            found[what] = found[what] + 1
            if effect > found.slowest_ms then
                found.slowest, found.slowest_ms = name, effect
            end
        end
    end
    return found
end

if canary.run ~= run or canary.phase == 'over' or redis.call('GET', K.canary_runner()) ~= process then
    return {'refused'}
end
if phase == 'ask' then
    redis.call('HSET', K.canary(), 'phase', 'ask', 'effect_us', effect_us)
    return {'ok'}
end
if why == '' then
    local found = tally()
    redis.call('HINCRBY', K.canary(), 'finished_runs', 1)
    redis.call('HSET', K.canary(), 'finished', now, 'finished_by', node, 'finished_us', canary.effect_us,
               'refused', found.refused, 'accepted', found.accepted, 'silent', found.silent,
               'slowest', found.slowest, 'slowest_ms', found.slowest_ms)
else
    redis.call('HINCRBY', K.canary(), 'unfinished', 1)
    redis.call('HSET', K.canary(), 'unfinished_at', now, 'unfinished_why', why)
end
redis.call('HSET', K.canary(), 'phase', 'over')
redis.call('DEL', K.key(canary.digest), K.key_id(canary.key), K.canary_runner())
return {'ok'}

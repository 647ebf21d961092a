-- Part of the prelude (engine/lua/prelude.lua): the canary.

-- The canary (src/auth/README.md#the-canary). A run has three phases: nodes use its key ('use'); its revocation was
-- answered, and nodes are asked ('ask'); 'over'. One node runs it, while K.canary_runner holds its name.
local CANARY_RUNNER_MS = 10000

-- When the next run is due: by the shorter interval, if nodes have different ones. `started` is missing until a node
-- has asked for the first time, and the first run is due one interval later. If Redis' clock was set back, it is due.
local function canary_due(canary, interval, now)
    local started = tonumber(canary.started) or now
    return started > now and now or started + math.min(interval, tonumber(canary.interval) or interval)
end

-- A hash as a table.
local function hash_read(name)
    local values, hash = redis.call('HGETALL', name), {}
    for i = 1, #values, 2 do
        hash[values[i]] = values[i + 1]
    end
    return hash
end

-- What became of a run's key at a node: {seen: when it was last told, run, state, effect: ms from the mark in Redis until
-- the node told that it refuses the key, '-': it has not}. state: 'used', 'refused' (before it was asked), 'asked' (and
-- refuses), 'violated' (accepted when it was asked). nil: no run has used a key there.
local function canary_node_read(packed)
    local seen, run, state, effect = (packed or ''):match('^(%d+) (%d+) (%l+) (%S+)$')
    return seen and {seen = tonumber(seen), run = tonumber(run), state = state, effect = effect} or nil
end

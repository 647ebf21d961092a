#!lua flags=allow-oom
-- A node asks how the canary stands, and tells what became of a run's key there.
-- ARGV: prefix, node, process, #interval (in ms), #told_run (the run that it tells of; 0: none), state ('' for nothing
--   new, 'left': the node stops; else as canary_node_read())
-- Returns: ok, {name, value, ...} of what there is: run (0: none yet), phase, nonce, name of its master key, id of its
--   key, ms until its key is revoked (in phase use), whether this node runs it (1 or 0), for that node: how many nodes
--   have used the key, how many of them have answered since; then for all: ms until the next run is due, whether this
--   node may begin one (1 or 0), ms since a run was last finished

local runner = redis.call('GET', K.canary_runner())

-- A violation counts whenever it is told, once for each run and node.
local function note(canary)
    local known = canary_node_read(redis.call('HGET', K.canary_nodes(), node)) or {run = 0}
    if known.run > told_run then
        return
    end
    if known.run < told_run then
        known = {state = '', effect = '-'}
    end
    if state == 'violated' and known.state ~= 'violated' then
        redis.call('HINCRBY', K.canary(), 'violations', 1)
        redis.call('HSET', K.canary(), 'violated', now_ms(), 'violated_by', node)
    end
    local packed = state ~= 'used' and known.effect == '-' and tonumber(canary.run) == told_run
        and redis.call('GET', K.key(canary.digest))
    local revoked = packed and state ~= 'violated' and key_unpack(packed).revoked
    local effect = revoked and string.format('%.0f', math.max(0, now_ms() - tonumber(revoked))) or known.effect
    redis.call('HSET', K.canary_nodes(), node, table.concat(
        {string.format('%.0f', now_ms()), told_run, known.state == 'violated' and 'violated' or state, effect}, ' '))
end

-- How many nodes have used the run's key, and how many of these have answered since.
local function count(run)
    local used, answered, values = 0, 0, redis.call('HVALS', K.canary_nodes())
    for _, packed in ipairs(values) do
        local there = canary_node_read(packed)
        if there and there.run == run then
            used = used + 1
            answered = answered + ((there.state == 'asked' or there.state == 'violated') and 1 or 0)
        end
    end
    return used, answered
end

local now, canary = now_ms(), hash_read(K.canary())
if state == 'left' then
    redis.call('HDEL', K.canary_nodes(), node)
    if runner == process then
        redis.call('DEL', K.canary_runner())
    end
    return {'ok'}
end
if state ~= '' then
    note(canary)
end
if not canary.started then
    redis.call('HSET', K.canary(), 'started', now, 'interval', interval)
end
local run, runs_it, used, answered = tonumber(canary.run or '0'), runner == process, 0, 0
if runs_it then
    redis.call('PEXPIRE', K.canary_runner(), CANARY_RUNNER_MS)
    used, answered = count(run)
end
local phase, due = canary.phase, math.max(0, canary_due(canary, interval, now) - now)
local is_under_way = phase == 'use' or phase == 'ask'
local is_set_back = now < tonumber(canary.started or now) -- Redis' clock, since the run began
local revoke_in = is_set_back and 0 or math.max(0, tonumber(canary.revoke or '0') - now)
return {'ok', record_add({}, {'run', 'phase', 'nonce', 'master_key', 'key', 'revoke_in', 'is_runner', 'used', 'answered',
                             'due_in', 'may_begin', 'since_finished'},
                         {run, canary.phase, canary.nonce, canary.master_key, canary.key, revoke_in, runs_it and 1 or 0,
                          used, answered, due, not runner and (is_under_way or due == 0) and 1 or 0,
                          canary.finished and math.max(0, now - tonumber(canary.finished))})}

-- Begins a run of the canary: makes its key, and takes the place of the node that runs it. The key and its account are
-- in no list, and no event is written. The key is removed when the run is over, or at the latest when it expires.
-- ARGV: prefix, node, process, #interval (in ms), #revoke_in (ms until the key is revoked), nonce, master_key (its
--   name), id (of the key), digest, packed (its record)
-- Returns: ok, whether the run before it was left unfinished (1 or 0); refused: a node runs it, or it is not due

local KEY_MS = 10 * 60 * 1000
local NODES_KEPT_MS = 60 * 60 * 1000

local now, canary, runner = now_ms(), hash_read(K.canary()), exists(K.canary_runner())
local is_under_way = canary.phase and canary.phase ~= 'over'

local function forget_nodes()
    for name, kept in pairs(hash_read(K.canary_nodes())) do
        local there = canary_node_read(kept)
        if not there or there.seen < now - NODES_KEPT_MS then
            redis.call('HDEL', K.canary_nodes(), name)
        end
    end
end

if runner or not is_under_way and canary_due(canary, interval, now) > now then
    return {'refused'}
end
if is_under_way then
    redis.call('HINCRBY', K.canary(), 'unfinished', 1)
    redis.call('HSET', K.canary(), 'unfinished_at', now, 'unfinished_why', 'the node that ran it stopped')
end
if canary.digest then
    redis.call('DEL', K.key(canary.digest), K.key_id(canary.key))
end
forget_nodes()
redis.call('SET', K.key(digest), packed, 'PX', KEY_MS)
redis.call('SET', K.key_id(id), digest, 'PX', KEY_MS)
redis.call('HINCRBY', K.canary(), 'run', 1)
redis.call('HSET', K.canary(), 'phase', 'use', 'runner', node, 'interval', interval, 'started', now,
           'revoke', now + revoke_in, 'nonce', nonce, 'master_key', master_key, 'key', id, 'digest', digest)
redis.call('SET', K.canary_runner(), process, 'PX', CANARY_RUNNER_MS)
return {'ok', is_under_way and 1 or 0}

#!lua flags=allow-oom
-- Marks chains of the dead as folded, takes the mark off, or forgets them (src/lease/README.md, rule 13).
-- ARGV: prefix, then for each chain: maker, its record as the node knows it, the record that it shall have ('': none)
-- Returns: ok

for i = 2, #ARGV, 3 do
    local maker, known, to = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    if redis.call('HGET', K.chains(), maker) ~= known then
        -- It has changed meanwhile, or another node was faster.
    elseif to ~= '' then
        redis.call('HSET', K.chains(), maker, to)
        redis.call('ZADD', K.chain_order(), redis.call('HINCRBY', K.store(), 'changes', 1), maker)
    else
        redis.call('HDEL', K.chains(), maker)
        redis.call('ZREM', K.chain_order(), maker)
    end
end
return {'ok'}

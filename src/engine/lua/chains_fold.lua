#!lua flags=allow-oom
-- Marks chains of the dead as folded, takes the mark off, or forgets them (src/lease/README.md, rule 13).
-- ARGV: prefix, chains... {maker, its record as the node knows it, the record that it shall have ('': none)}
-- Returns: ok

for i = FIRST, #ARGV, EACH do
    local maker, known, to = unpack(ARGV, i, i + EACH - 1)
    -- Unless it has changed meanwhile, or another node was faster.
    local is_same = redis.call('HGET', K.chains(), maker) == known
    if is_same and to ~= '' then
        redis.call('HSET', K.chains(), maker, to)
        redis.call('ZADD', K.chain_order(), redis.call('HINCRBY', K.store(), 'changes', 1), maker)
    elseif is_same then
        redis.call('HDEL', K.chains(), maker)
        redis.call('ZREM', K.chain_order(), maker)
    end
end
return {'ok'}

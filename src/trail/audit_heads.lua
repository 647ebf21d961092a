#!lua flags=allow-oom
-- Publishes how far a node's chain has come, and returns the others. Where no node has published for 30 days, none
-- writes a log any more.
-- ARGV: prefix, own (chain), head ('<time in ms> ...'; '' publishes nothing), #most (heads wanted), [place (where a
--   node writes that ends)]
-- Returns: ok, then chain and head of those that follow this chain by name, and then of those before it

local KEPT_MS = 30 * 24 * 60 * 60 * 1000
local CHAINS_MAX = 1000

if head ~= '' then
    redis.call('HSET', K.log_heads(), own, head)
    redis.call('PEXPIRE', K.log_heads(), KEPT_MS)
end

if place and redis.call('GET', K.log_writer(own)) == place then
    redis.call('DEL', K.log_writer(own))
end

-- The newest; of more than CHAINS_MAX, which only nodes that lose their disks with each start can make, the rest is
-- dropped.
local known, heads, chains = redis.call('HGETALL', K.log_heads()), {}, {}
for i = 1, #known, 2 do
    heads[known[i]] = known[i + 1]
    chains[#chains + 1] = known[i]
end
local function published(chain)
    return tonumber(heads[chain]:match('^%d+') or '0')
end
table.sort(chains, function(a, b) return published(a) > published(b) end)
for i = #chains, 1, -1 do
    if i > CHAINS_MAX or now_ms() - published(chains[i]) > KEPT_MS then
        redis.call('HDEL', K.log_heads(), chains[i])
        table.remove(chains, i)
    elseif chains[i] == own then
        table.remove(chains, i)
    end
end
table.sort(chains, function(a, b)
    if (a > own) ~= (b > own) then
        return a > own
    end
    return a < b
end)
local reply = {'ok'}
for i = 1, math.min(most, #chains) do
    reply[#reply + 1], reply[#reply + 2] = chains[i], heads[chains[i]]
end
return reply

-- The nodes, for 'chatelaine status'. For commands only: the work grows with their number.
-- ARGV: prefix
-- Returns: ok, lease_max, registry (member, what it holds, ...), {node, age of its report in ms, report}...

local now = now_ms()
local reply = {'ok', tonumber(redis.call('GET', K.lease_max()) or '0'), redis.call('HGETALL', K.nodes())}
local nodes = redis.call('ZRANGE', K.reports(), 0, -1, 'WITHSCORES')
for i = 1, #nodes, 2 do
    local report = redis.call('GET', K.report(nodes[i]))
    if report then
        reply[#reply + 1] = {nodes[i], string.format('%.0f', math.max(0, now - tonumber(nodes[i + 1]))), report}
    end
end
return reply

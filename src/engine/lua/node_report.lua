#!lua flags=allow-oom
-- What a node says of itself, for 'chatelaine status'. Reports of nodes that are silent for an hour are dropped.
-- ARGV: prefix, node, report ('' drops this node's)
-- Returns: ok

local KEPT_MS = 60 * 60 * 1000

local now = now_ms()
if report == '' then
    redis.call('DEL', K.report(node))
    redis.call('ZREM', K.reports(), node)
    return {'ok'}
end
redis.call('SET', K.report(node), report, 'PX', KEPT_MS)
redis.call('ZADD', K.reports(), now, node)
redis.call('ZREMRANGEBYSCORE', K.reports(), '-inf', '(' .. (now - KEPT_MS))
redis.call('PEXPIRE', K.reports(), KEPT_MS)
return {'ok'}

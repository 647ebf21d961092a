#!lua flags=allow-oom
-- One heartbeat of a member: registers it, and echoes the nonce on the member's own channel, behind every invalidation
-- published before. The entry says what the member reads. Revokers compute their wait from lease_max. It only grows,
-- because a lease granted before a restart may still be valid.
-- ARGV: prefix, member, heartbeat number, lease in ms, nonce
-- Returns: ok

local lease = tonumber(ARGV[4])
redis.call('HSET', K.nodes(), ARGV[2], ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. READS_LISTS)
if lease > tonumber(redis.call('GET', K.lease_max()) or '0') then
    redis.call('SET', K.lease_max(), lease)
end
redis.call(PUBLISH, K.node(ARGV[2]), 'lease ' .. ARGV[5])
return {'ok'}

-- Begins the enrolment of a device and counts it against the address.
-- ARGV: prefix, digest of the device code, digest of the user code, client, name, scopes, ip, lifetime in ms, interval
--   in ms, tag of the address, MAC
-- Returns: ok; conflict: one of the codes is taken; refused, seconds to wait

-- An expired enrolment is kept for this long, so that its device hears that it has expired.
local KEPT_MS = 60 * 60 * 1000
local FREE_PER_ADDRESS = 30

local digest, code_digest, lifetime, ip_tag = ARGV[2], ARGV[3], tonumber(ARGV[8]), ARGV[10]
local now = now_ms()
local wait = throttle_wait(ip_tag, now)
if wait > 0 then
    return {'refused', math.ceil(wait / 1000)}
end
if exists(K.device(digest)) or exists(K.user_code(code_digest)) then
    return {'conflict'}
end
throttle_count(ip_tag, FREE_PER_ADDRESS, now)
redis.call('HSET', K.device(digest), 'client', ARGV[4], 'name', ARGV[5], 'scopes', ARGV[6], 'ip', ARGV[7],
           'created', now, 'expires', now + lifetime, 'interval', ARGV[9], 'status', 'pending',
           'mac', ARGV[11])
redis.call('PEXPIRE', K.device(digest), lifetime + KEPT_MS)
redis.call('SET', K.user_code(code_digest), digest, 'PX', lifetime + KEPT_MS)
return {'ok'}

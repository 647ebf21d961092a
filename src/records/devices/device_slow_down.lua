-- A device has polled too soon: its interval gets longer.
-- ARGV: prefix, digest of the device code
-- Returns: ok; not_found

-- RFC 8628 section 3.5: added for this and all later requests.
local SLOW_DOWN_MS = 5000

local device = device_read(ARGV[2])
if not device then
    return {'not_found'}
end
redis.call('HSET', K.device(ARGV[2]), 'polled', now_ms(), 'interval', device.interval + SLOW_DOWN_MS)
return {'ok'}

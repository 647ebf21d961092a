-- A device has polled too soon: its interval gets longer.
-- ARGV: prefix, digest (of the device code)
-- Returns: ok; not_found

-- RFC 8628 section 3.5: added for this and all later requests.
local SLOW_DOWN_MS = 5000

local device = device_read(digest)
if not device then
    return {'not_found'}
end
redis.call('HSET', K.device(digest), 'polled', now_ms(), 'interval', device.interval + SLOW_DOWN_MS)
return {'ok'}

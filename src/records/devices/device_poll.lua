-- A device asks whether it is approved. If so, device_claim.lua then creates its key. The node counts wrong codes and
-- hasty devices against the address (throttle_fail.lua). A device that keeps its interval is not counted, because a
-- client with a valid device code is not guessing.
-- ARGV: prefix, digest (of the device code), client
-- Returns: ok, account, name, scopes, approving user, MAC of the approval; not_found: no such code, or another client's;
--   refused, 'pending', 'hasty' (pending, and nothing was noted: see device_slow_down.lua), 'denied', 'expired' or
--   'claimed'

-- Requests sent at the right pace arrive slightly early or late.
local JITTER_MS = 1000

local now = now_ms()
local device = device_read(digest)
if not device or device.client ~= client then
    return {'not_found'}
end
if device.status == 'claimed' or device.status == 'denied' then
    return {'refused', device.status}
end
if now >= device.expires then
    return {'refused', 'expired'}
end
if device.status == 'approved' then
    return {'ok', device.account, device.name, device.scopes, device.user, device.mac}
end
if device.polled > 0 and now - device.polled < device.interval - JITTER_MS then
    return {'refused', 'hasty'}
end
redis.call('HSET', K.device(digest), 'polled', now)
return {'refused', 'pending'}

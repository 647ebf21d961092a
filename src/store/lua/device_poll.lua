-- A device asks whether it is approved. If so, device_claim.lua then creates its key.
-- ARGV: prefix, digests of the device code (as known_digest() takes them), client, tag of the address
-- Returns: ok, account, name, scopes, approving user, MAC of the approval, digest of the code, account's name;
--   not_found: no such code, another client's, or claimed already; refused, 'pending', 'slow_down', 'denied' or
--   'expired'; refused, 'throttled', seconds to wait

-- Wrong codes and hasty devices count against the address. They never delay a device that keeps its interval, because a
-- client with a valid device code is not guessing.
local FREE_PER_ADDRESS = 30
-- RFC 8628 section 3.5: added for this and all later requests.
local SLOW_DOWN_MS = 5000
-- Requests sent at the right pace arrive slightly early or late.
local JITTER_MS = 1000

local digest, client, ip_tag = known_digest(ARGV[2], K.device), ARGV[3], ARGV[4]
local now = now_ms()

-- Counts the request against the address. Returns the reply if the address has to wait.
local function throttled()
    local wait = throttle_wait(ip_tag, now)
    if wait > 0 then
        return {'refused', 'throttled', math.ceil(wait / 1000)}
    end
    throttle_count(ip_tag, FREE_PER_ADDRESS, now)
    return nil
end

local device = device_read(digest)
if not device or device.client ~= client then
    return throttled() or {'not_found'}
end
if device.status == 'claimed' then
    return {'not_found'}
end
if device.status == 'denied' then
    return {'refused', 'denied'}
end
if now >= device.expires then
    return {'refused', 'expired'}
end

if device.status == 'approved' then
    return {'ok', device.account, device.name, device.scopes, device.user, device.mac, digest,
            redis.call('HGET', K.account(device.account), 'name') or ''}
end

if device.polled == 0 or now - device.polled >= device.interval - JITTER_MS then
    redis.call('HSET', K.device(digest), 'polled', now)
    return {'refused', 'pending'}
end
local reply = throttled()
if not reply then
    redis.call('HSET', K.device(digest), 'polled', now, 'interval', device.interval + SLOW_DOWN_MS)
    reply = {'refused', 'slow_down'}
end
return reply

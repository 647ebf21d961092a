-- The enrolment of a user code, for a user of that account.
-- ARGV: prefix, code_digest (of the user code), account
-- Returns: ok, client, name, scopes, ip, created, expires, status, digest, MAC; not_found: no such code; refused: it is
--   over, or another account has decided

local digest = redis.call('GET', K.user_code(code_digest))
if not digest then
    return {'not_found'}
end
local device = device_read(digest)
if not device or device.status == 'claimed' or now_ms() >= device.expires
    or (device.account and device.account ~= account) then
    return {'refused'}
end
return {'ok', device.client, device.name, device.scopes, device.ip, device.created, device.expires, device.status,
        digest, device.mac}

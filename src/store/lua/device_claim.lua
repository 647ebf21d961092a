-- Creates the key of an approved enrolment, once. Compares the approval again, because it may have been denied, claimed
-- or altered since the node read it.
-- ARGV: prefix, digest of the device code, account, name, scopes, approving user, MAC of the approval, digest of the
--   key, key record, ip, request id, events to keep, most active device keys
-- Returns: ok; not_found: claimed already, it has changed, or its user is gone or disabled; refused: no such account;
--   suspended: it is suspended or closed; conflict: the key was discarded before it was created; full: the account has
--   its maximum of active device keys
-- Event: device_key.created

local digest = ARGV[2]
local device = device_read(digest)
if not device or device.status ~= 'approved' or now_ms() >= device.expires or device.account ~= ARGV[3]
    or device.name ~= ARGV[4] or device.scopes ~= ARGV[5] or device.user ~= ARGV[6] or device.mac ~= ARGV[7] then
    return {'not_found'}
end
local approver = redis.call('HMGET', K.user(device.user), 'account', 'disabled')
if approver[1] ~= device.account or approver[2] then
    return {'not_found'}
end
if keys_are_full(device.account, 'device_key', 'live', tonumber(ARGV[13])) then
    return {'full'}
end
local added = key_add(ARGV[8], ARGV[9], {device.user, ARGV[10], ARGV[11], ARGV[12]})
if added == 'ok' then
    redis.call('HSET', K.device(digest), 'status', 'claimed')
end
return {added}

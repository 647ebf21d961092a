#!lua flags=allow-oom
-- Marks an enrolment with what was decided in an account's partition. The first account to do so has decided.
-- ARGV: prefix, digest (of the device code), status ('approved', 'denied' or 'claimed'), account, user, mac (of the
--   approval; '' for a denial)
-- Returns: ok, also if it is marked so; not_found: unknown, over, or another account's

local RANKS = {pending = 0, approved = 1, denied = 2, claimed = 2}

local device = device_read(digest)
if not device or (device.account and device.account ~= account) then
    return {'not_found'}
end
if device.status == status then
    return {'ok'}
end
if RANKS[status] <= RANKS[device.status] then
    return {'not_found'}
end
redis.call('HSET', K.device(digest), 'status', status, 'account', account, 'user', user, 'mac', mac)
return {'ok'}

-- Creates the key of an approved enrolment, once, in the account's partition. Compares the approval, because it may have
-- been denied, claimed or altered since the node read it. The node then marks the enrolment (device_mark.lua).
-- ARGV: prefix, digest (of the device code), account, name, scopes, user (who approved), mac (of the approval),
--   key_digest, packed (the record of the key), ip, request_id, events_kept, keys_max (limits, as for keys_are_full())
-- Returns: ok, account's name; not_found: claimed already, denied, it has changed, or its user is gone or disabled;
--   refused: no such account; suspended: it is suspended or closed; conflict: the key was discarded before it was
--   created, or the user's keys are being looked for (person_keys.lua); full: the account has its maximum of device keys
-- Event: device_key.created

-- Nodes of version 0.2 approve, deny and claim at the enrolment alone. Where they serve there is one partition, so the
-- enrolment is here.
local device = device_read(digest)
if device and (device.status ~= 'approved' or device.account ~= account) then
    return {'not_found'}
end
local approval = decision_read(account, digest) or device
if not approval or approval.status ~= 'approved' or approval.name ~= name or approval.scopes ~= scopes
    or approval.user ~= user or approval.mac ~= mac then
    return {'not_found'}
end
local approver = redis.call('HMGET', K.user(user), 'account', 'disabled')
if approver[1] ~= account or approver[2] then
    return {'not_found'}
end
if exists(K.account_leaving(account, user)) then
    return {'conflict'}
end
if keys_are_full(account, 'device_key', 'live', keys_max) then
    return {'full'}
end
local added = key_add(key_digest, packed, {user, ip, request_id, events_kept})
if added ~= 'ok' then
    return {added}
end
keys_made_count(account, 'device_key', 'live')
decision_write(account, digest, 'claimed')
if device then
    redis.call('HSET', K.device(digest), 'status', 'claimed')
end
return {'ok', redis.call('HGET', K.account(account), 'name') or ''}

-- Approves an enrolment, in the account's partition. The node then marks the enrolment (device_mark.lua); if that was
-- refused, it denies again what was approved here. Repeating an approval changes nothing.
-- ARGV: prefix, digest (of the device code), account, name, scopes, mac (of the approval; '': the enrolment is marked
--   as approved already), source {user, ip, request_id, events_kept}, credential (the user's), keys_max (limits, as for
--   keys_are_full()), #changes_max (per minute)
-- Returns: ok, approving user, MAC of the approval; not_found: denied or claimed; full: the account has its maximum of
--   device keys; as actor_refused(); as limit_refused(); leaving: the user's keys are looked for
--   (person_keys.lua)
-- Event: device.approved, unless repeated

local refused = actor_refused(credential, user, account)
if refused then
    return refused
end
local decision = decision_read(account, digest)
if decision and decision.status ~= 'approved' then
    return {'not_found'}
end
-- An enrolment that is marked, without a decision here, was approved by a node of version 0.2.
if decision or mac == '' then
    return {'ok', decision and decision.user or user, decision and decision.mac or ''}
end
local limited = limit_refused(user, account, 'live', changes_max)
    or exists(K.account_leaving(account, user)) and {'leaving'}
if limited or keys_are_full(account, 'device_key', 'live', keys_max) then
    return limited or {'full'}
end
limit_count(user, account, 'live', changes_max)
decision_write(account, digest, 'approved', {'name', name, 'scopes', scopes, 'user', user, 'mac', mac})
audit(account, 'device.approved', name, source)
return {'ok', user, mac}

#!lua flags=allow-oom
-- Denies an enrolment, in the account's partition: from now on its device cannot claim a key. The node then marks the
-- enrolment (device_mark.lua). An approval can be denied until it is claimed; a denial is final.
-- ARGV: prefix, digest (of the device code), account, name, source {actor, ip, request_id, events_kept}, credential
--   (the actor's)
-- Returns: ok; not_found: claimed; as actor_refused()
-- Event: device.denied, unless repeated

local refused = actor_refused(credential, actor, account)
if refused then
    return refused
end
local decision = decision_read(account, digest)
if decision and decision.status == 'claimed' then
    return {'not_found'}
end
if not decision or decision.status ~= 'denied' then
    decision_write(account, digest, 'denied')
    audit(account, 'device.denied', name, source)
end
return {'ok'}

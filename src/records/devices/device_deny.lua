#!lua flags=allow-oom
-- Denies an enrolment, in the account's partition: from now on its device cannot claim a key. The node then marks the
-- enrolment (device_mark.lua). An approval can be denied until it is claimed; a denial is final.
-- ARGV: prefix, digest of the device code, account, name, actor, ip, request id, events to keep, the actor's credential
-- Returns: ok; not_found: claimed; as actor_refused()
-- Event: device.denied, unless repeated

local digest, account = ARGV[2], ARGV[3]
local refused = actor_refused(ARGV[9], ARGV[5], account)
if refused then
    return refused
end
local decision = decision_read(account, digest)
if decision and decision.status == 'claimed' then
    return {'not_found'}
end
if not decision or decision.status ~= 'denied' then
    decision_write(account, digest, 'denied')
    audit(account, 'device.denied', ARGV[4], source_from(5))
end
return {'ok'}

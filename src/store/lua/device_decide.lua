#!lua flags=allow-oom
-- Approves or denies an enrolment. An approval can be denied until it is claimed; a denial is final. Repeating a
-- decision changes nothing.
-- ARGV: prefix, digests of the user code, account, tag of the user, 'approved' or 'denied', user, ip, request id,
--   events to keep, the user's credential, MAC of the approval ('' for none), most active device keys, most changes
--   per minute
-- Returns: ok, client, name, scopes, ip, created, expires, status, digest, MAC; not_found: no such code, it is over, or
--   another account's; refused, seconds to wait; full (approvals only): the account has its maximum of active device
--   keys; as actor_refused(); as limit_refused() (approvals only)
-- Event: device.approved or device.denied, unless repeated

local account, decision, user = ARGV[3], ARGV[5], ARGV[6]
local keys_max, changes_max = tonumber(ARGV[12]), tonumber(ARGV[13])
local refused = actor_refused(ARGV[10], user, account)
if refused then
    return refused
end
local device, digest, refusal = device_find(ARGV[2], account, ARGV[4], now_ms())
if refusal then
    return refusal
end
if device.status == 'denied' and decision == 'approved' then
    return {'not_found'}
end
if device.status ~= decision and decision == 'approved' then
    local limited = limit_refused(user, account, 'live', changes_max)
    if limited or keys_are_full(account, 'device_key', 'live', keys_max) then
        return limited or {'full'}
    end
    limit_count(user, account, 'live', changes_max)
end
if device.status ~= decision then
    device.status = decision
    redis.call('HSET', K.device(digest), 'status', decision, 'account', account, 'user', user, 'mac', ARGV[11])
    audit(account, 'device.' .. decision, device.name, {user, ARGV[7], ARGV[8], ARGV[9]})
end
return device_reply(device, digest)

-- The enrolment of a user code.
-- ARGV: prefix, digests of the user code, account, tag of the user
-- Returns: ok, client, name, scopes, ip, created, expires, status, digest, MAC; not_found: no such code, it is over, or
--   another account's; refused, seconds to wait

local device, digest, refusal = device_find(ARGV[2], ARGV[3], ARGV[4], now_ms())
return refusal or device_reply(device, digest)

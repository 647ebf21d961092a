-- Begins the enrolment of a device, in the partition of its user code.
-- ARGV: prefix, digest of the device code, digest of the user code, client, name, scopes, ip, lifetime in ms, interval
--   in ms, MAC, network (a tag), most enrolments that are kept here
-- Returns: ok; conflict: one of the codes is taken

-- An expired enrolment is kept for this long, so that its device hears that it has expired.
local KEPT_MS = 60 * 60 * 1000

local digest, code_digest, lifetime = ARGV[2], ARGV[3], tonumber(ARGV[8])
if exists(K.device(digest)) or exists(K.user_code(code_digest)) then
    return {'conflict'}
end
local now = now_ms()
redis.call('HSET', K.device(digest), 'client', ARGV[4], 'name', ARGV[5], 'scopes', ARGV[6], 'ip', ARGV[7],
           'created', now, 'expires', now + lifetime, 'interval', ARGV[9], 'status', 'pending',
           'mac', ARGV[10])
redis.call('PEXPIRE', K.device(digest), lifetime + KEPT_MS)
redis.call('SET', K.user_code(code_digest), digest, 'PX', lifetime + KEPT_MS)
strangers_keep('enrolment', ARGV[11], tonumber(ARGV[12]), lifetime + KEPT_MS, digest .. ' ' .. code_digest)
return {'ok'}

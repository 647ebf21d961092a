-- Begins the enrolment of a device, in the partition of its user code.
-- ARGV: prefix, digest (of the device code), code_digest (of the user code), client, name, scopes, ip, #lifetime (in
--   ms), interval (in ms), mac, network (a tag), #enrolments_max (that are kept here)
-- Returns: ok; conflict: one of the codes is taken

-- An expired enrolment is kept for this long, so that its device hears that it has expired.
local KEPT_MS = 60 * 60 * 1000

if exists(K.device(digest)) or exists(K.user_code(code_digest)) then
    return {'conflict'}
end
local now = now_ms()
redis.call('HSET', K.device(digest), 'client', client, 'name', name, 'scopes', scopes, 'ip', ip,
           'created', now, 'expires', now + lifetime, 'interval', interval, 'status', 'pending',
           'mac', mac)
redis.call('PEXPIRE', K.device(digest), lifetime + KEPT_MS)
redis.call('SET', K.user_code(code_digest), digest, 'PX', lifetime + KEPT_MS)
strangers_keep('enrolment', network, enrolments_max, lifetime + KEPT_MS, digest .. ' ' .. code_digest)
return {'ok'}

#!lua flags=allow-oom
-- Revokes some keys that go back to one person. The barrier goes with the last call for the person: its message comes
-- behind the invalidations of all keys, so one barrier covers them. Keys that are revoked already are told again.
-- ARGV: prefix, account, user, ids (of keys, separated by blanks), source {actor, ip, request_id, events_kept}, member
--   (to acknowledge to; '-' for none), barrier, reason, token (name of the mark, see person_keys.lua), is_last (whether
--   these are the last, '1' or '0')
-- Returns: ok, lease_max, registry (member, what it holds, ...), key...; conflict: the mark is gone
-- Event: <kind>.revoked, the first time for each

local leaving, records = K.account_leaving(account, user), {}
if redis.call('GET', leaving) ~= token then
    return {'conflict'}
end
for id in ids:gmatch('%S+') do
    local record = key_record(id)
    if record and record.account == account then
        records[#records + 1] = record
    end
end
local registry = redis.call('HGETALL', K.nodes())
local reply = {'ok', tonumber(redis.call('GET', K.lease_max()) or '0'), registry}
keys_revoke(records, source, member, barrier, registry, {reason = reason, user = user})
local ended = exists(K.user(user)) and K.user_ended_keys(user) or K.account_ended_keys(account, user)
for i, record in ipairs(records) do
    redis.call('SADD', ended, record.id)
    reply[i + 3] = key_reply(record)
end
redis.call('PEXPIRE', ended, ENDED_KEYS_MS)
if is_last == '1' then
    redis.call('DEL', leaving)
else
    redis.call('PEXPIRE', leaving, LEAVING_MS)
end
return reply

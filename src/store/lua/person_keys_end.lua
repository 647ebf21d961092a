#!lua flags=allow-oom
-- Revokes some keys of one user's making. The barrier goes with the last call for the user: its message comes behind
-- the invalidations of all keys, so one barrier covers them. Keys that are revoked already are told again.
-- ARGV: prefix, account, user, keys (separated by blanks), actor, ip, request id, events to keep, member to acknowledge
--   to ('-' for none), barrier
-- Returns: ok, lease_max, registry (member, what it holds, ...), key...
-- Event: <kind>.revoked, the first time for each

local account, user, source = ARGV[2], ARGV[3], source_from(5)
local records = {}
for id in ARGV[4]:gmatch('%S+') do
    local record = key_record(id)
    if record and record.account == account then
        records[#records + 1] = record
    end
end
local registry = redis.call('HGETALL', K.nodes())
local reply = {'ok', tonumber(redis.call('GET', K.lease_max()) or '0'), registry}
keys_revoke(records, source, ARGV[9], ARGV[10], registry)
for i, record in ipairs(records) do
    if exists(K.user(user)) then
        redis.call('SADD', K.user_ended_keys(user), record.id)
    end
    reply[i + 3] = key_reply(record)
end
return reply

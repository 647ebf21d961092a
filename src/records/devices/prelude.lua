-- Part of the prelude (engine/lua/prelude.lua): enrolments.

-- A device enrolment: pending, then approved or denied by a user, whose account is set then, and at last claimed. It is
-- in the partition of its user code. {client, name, scopes, ip, created, expires, interval, polled, status, account,
-- user, mac} with times as numbers; nil if unknown. The MAC comes from the node that began it, then from the node that
-- approved it. Nodes verify it ('': from a version without MACs).
local function device_read(digest)
    local d = redis.call('HMGET', K.device(digest), 'client', 'name', 'scopes', 'ip', 'created', 'expires', 'interval',
                         'polled', 'status', 'account', 'user', 'mac')
    if not d[1] then
        return nil
    end
    return {client = d[1], name = d[2], scopes = d[3], ip = d[4], created = tonumber(d[5]), expires = tonumber(d[6]),
            interval = tonumber(d[7]), polled = tonumber(d[8] or '0'), status = d[9], account = d[10] or nil,
            user = d[11] or nil, mac = d[12] or ''}
end

-- What an account has decided about an enrolment, in the account's partition: approved, which can become denied or
-- claimed; both are final. It alone decides whether a key is made. It outlives the enrolment, so that no step that
-- arrives late begins again what has ended.
local DECISION_KEPT_MS = 2 * 60 * 60 * 1000

-- {status, name, scopes, user, mac}; nil: nothing was decided.
local function decision_read(account, digest)
    local d = redis.call('HMGET', K.account_device(account, digest), 'status', 'name', 'scopes', 'user', 'mac')
    return d[1] and {status = d[1], name = d[2], scopes = d[3], user = d[4], mac = d[5]} or nil
end

-- fields: {field, value...} of an approval.
local function decision_write(account, digest, status, fields)
    redis.call('HSET', K.account_device(account, digest), 'status', status, unpack(fields or {}))
    redis.call('PEXPIRE', K.account_device(account, digest), DECISION_KEPT_MS)
end

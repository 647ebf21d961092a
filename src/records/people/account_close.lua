#!lua flags=allow-oom
-- Closes an account for good, once its keys are revoked and its people removed. Nodes need not keep it in memory any
-- longer.
-- ARGV: prefix, account, source {actor, ip, request_id, events_kept}, with_erasure ('1' to erase what is kept of its
--   people, and to bury its keys at once; or '0')
-- Returns: ok; not_found; conflict: something of it is left, or it is not being closed
-- Event: account.closed, the first time, and each time that it is erased

local status = exists(K.account(account)) and account_status(account)
if not status then
    return {'not_found'}
end
local now, erases = now_ms(), with_erasure == '1'
-- Its keys are found there from a time on (key_burials.lua).
local function bury(due)
    redis.call('ZADD', K.burials_due(), due, account .. ' 1 ')
end
local function erase()
    bury(now)
    redis.call('UNLINK', K.account_gone(account), K.account_gone_people(account), K.account_gone_since(account))
    audit(account, 'account.closed', account, source, {data = {erased = 'true'}})
    return {'ok'}
end
if status == 'closed' then
    return erases and erase() or {'ok'}
end
local left = redis.call('SCARD', K.account_users(account))
for _, class in ipairs({'ak-live', 'ak-test', 'dk'}) do
    left = left + redis.call('ZCARD', K.account_keys(account, class .. ':active'))
end
if status ~= 'closing' or left > 0 then
    return {'conflict'}
end
suspended_put(account, nil, '-', '-')
redis.call('HSET', K.account(account), 'closed', now)
if erases then
    return erase()
end
bury(now + CLOSED_KEPT_MS)
audit(account, 'account.closed', account, source)
return {'ok'}

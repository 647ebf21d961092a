#!lua flags=allow-oom
-- Closes an account for good, once its keys are revoked and its people removed. Nodes need not keep it in memory any
-- longer.
-- ARGV: prefix, account, actor, ip, request id, events to keep
-- Returns: ok; not_found; conflict: something of it is left, or it is not being closed
-- Event: account.closed, the first time

local account = ARGV[2]
local status = exists(K.account(account)) and account_status(account)
if not status then
    return {'not_found'}
end
if status == 'closed' then
    return {'ok'}
end
local left = redis.call('SCARD', K.account_users(account))
for _, class in ipairs({'ak-live', 'ak-test', 'dk'}) do
    left = left + redis.call('ZCARD', K.account_keys(account, class .. ':active'))
end
if status ~= 'closing' or left > 0 then
    return {'conflict'}
end
suspended_put(account, nil, '-', '-')
redis.call('HSET', K.account(account), 'closed', now_ms())
audit(account, 'account.closed', account, source_from(3))
return {'ok'}

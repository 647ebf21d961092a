#!lua
-- Resumes a suspended account.
-- ARGV: prefix, account, source {actor, ip, request_id, events_kept}
-- Returns: ok, name, whether it was suspended (1 or 0); not_found; conflict: its closing has begun
-- Event: account.resumed, if it was suspended

local a = redis.call('HMGET', K.account(account), 'name', 'suspended', 'closing')
if not a[1] then
    return {'not_found'}
end
if a[3] then
    return {'conflict'}
end
if not a[2] then
    return {'ok', a[1], 0}
end
suspended_put(account, nil, '-', '-')
redis.call('HDEL', K.key_endings(account), account)
audit(account, 'account.resumed', account, source)
return {'ok', a[1], 1}

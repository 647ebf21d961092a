-- One account.
-- ARGV: prefix, account
-- Returns: ok, {account, name, status}; not_found

local name = redis.call('HGET', K.account(ARGV[2]), 'name')
if not name then
    return {'not_found'}
end
return {'ok', {ARGV[2], name, account_status(ARGV[2])}}

-- One account.
-- ARGV: prefix, account
-- Returns: ok, account (ACCOUNT_FIELDS in account_store.c); not_found

local name = redis.call('HGET', K.account(account), 'name')
if not name then
    return {'not_found'}
end
return {'ok', record_add({}, {'id', 'name', 'status'}, {account, name, account_status(account)})}

-- One account.
-- ARGV: prefix, account
-- Returns: ok, account (ACCOUNT_FIELDS in account_store.c); not_found

local name = redis.call('HGET', K.account(ARGV[2]), 'name')
if not name then
    return {'not_found'}
end
return {'ok', record_add({}, {'id', 'name', 'status'}, {ARGV[2], name, account_status(ARGV[2])})}

-- Accounts, oldest first. For commands only. Without a limit the work grows with their number.
-- ARGV: prefix, then to get a page: account to start after ('' for the first), limit
-- Returns: ok, accounts (ACCOUNT_FIELDS in account_store.c)...

local ids
if ARGV[3] then
    ids = redis.call('ZRANGEBYLEX', K.accounts(), ARGV[2] ~= '' and '(' .. ARGV[2] or '-', '+', 'LIMIT', 0, ARGV[3])
else
    ids = redis.call('ZRANGE', K.accounts(), 0, -1)
end
local reply = {'ok'}
for _, account in ipairs(ids) do
    reply[#reply + 1] = record_add({}, {'id', 'name', 'status'},
                                   {account, redis.call('HGET', K.account(account), 'name'), account_status(account)})
end
return reply

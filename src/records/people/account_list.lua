-- Accounts, oldest first. For commands only. Without a limit the work grows with their number.
-- ARGV: prefix, [after ('' for the first), limit (for a page)]
-- Returns: ok, accounts (ACCOUNT_FIELDS in account_store.c)...

local ids
if limit then
    ids = redis.call('ZRANGEBYLEX', K.accounts(), after ~= '' and '(' .. after or '-', '+', 'LIMIT', 0, limit)
else
    ids = redis.call('ZRANGE', K.accounts(), 0, -1)
end
local reply = {'ok'}
for _, account in ipairs(ids) do
    reply[#reply + 1] = record_add({}, {'id', 'name', 'status'},
                                   {account, redis.call('HGET', K.account(account), 'name'), account_status(account)})
end
return reply

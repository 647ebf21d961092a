-- All accounts, oldest first. For commands only: the work grows with their number.
-- ARGV: prefix
-- Returns: ok, {account, name}...

local reply = {'ok'}
for _, account in ipairs(redis.call('ZRANGE', K.accounts(), 0, -1)) do
    reply[#reply + 1] = {account, redis.call('HGET', K.account(account), 'name')}
end
return reply

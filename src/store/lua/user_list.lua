-- The users of one account or of all, oldest first within each. For commands only: the work grows with their number.
-- ARGV: prefix, account ('' for all), with secrets ('1' or '0')
-- Returns: ok, user record...; with secrets, each also has the short name of the master key of the user's recovery codes
--   ('' if none are left)

local accounts = {ARGV[2]}
if ARGV[2] == '' then
    accounts = redis.call('ZRANGE', K.accounts(), 0, -1)
end
local reply = {'ok'}
for _, account in ipairs(accounts) do
    local users = redis.call('SMEMBERS', K.account_users(account))
    table.sort(users)
    for _, user in ipairs(users) do
        local record = user_record(user, ARGV[3] == '1')
        if not record then
            error('a listed user of ' .. account .. ' does not exist')
        end
        if ARGV[3] == '1' then
            record[11] = exists(K.user_recovery_codes(user)) and redis.call('HGET', K.user(user), 'recovery_codes_key') or ''
        end
        reply[#reply + 1] = record
    end
end
return reply

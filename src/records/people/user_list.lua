-- The next users of an account, oldest first, as they are stored. For commands only.
-- ARGV: prefix, account, limit, after (a user; '' for none)
-- Returns: ok, user record with secrets and the short name of the master key of the user's recovery codes, if
--   some are left...

local people = people_index(account)
if not people then
    return {'again'}
end
local reply = {'ok'}
for i, user in ipairs(redis.call('ZRANGEBYLEX', people, after ~= '' and '(' .. after or '-', '+', 'LIMIT', 0,
                                 limit)) do
    local record = user_record(user, 'password', 'totp', exists(K.user_recovery_codes(user)) and 'recovery_codes_key' or nil)
    if not record then
        error('a listed user of ' .. account .. ' does not exist')
    end
    reply[i + 1] = record
end
return reply

-- One user by email.
-- ARGV: prefix, email
-- Returns: ok, user record with secrets; not_found

local user = redis.call('GET', K.email(ARGV[2]))
local record = user and user_record(user, true)
if not record then
    return {'not_found'}
end
return {'ok', record}

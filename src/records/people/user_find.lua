-- One user.
-- ARGV: prefix, user
-- Returns: ok, user record with secrets; not_found

local record = user_record(user, 'password', 'totp')
if not record then
    return {'not_found'}
end
return {'ok', record}

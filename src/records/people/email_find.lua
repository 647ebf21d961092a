#!lua flags=allow-oom
-- The user of an email, as its claim says.
-- ARGV: prefix, email
-- Returns: ok, user, account; not_found: nobody's

local user, account = email_owner(email)
if not user then
    return {'not_found'}
end
return {'ok', user, account}

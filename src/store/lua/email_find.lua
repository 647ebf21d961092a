#!lua flags=allow-oom
-- Whose an email is.
-- ARGV: prefix, email
-- Returns: ok, user, account; not_found: nobody's

local user, account = email_owner(ARGV[2])
if not user then
    return {'not_found'}
end
return {'ok', user, account}

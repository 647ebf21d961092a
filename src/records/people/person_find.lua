-- One of an account's people.
-- ARGV: prefix, account ('' for any), user, with_removed (whether one who was removed counts, too, '1' or '0')
-- Returns: ok, person_reply(); not_found

local person = person_reply(user)
if not person and with_removed == '1' then
    person = person_gone(account, user)
end
if not person or (account ~= '' and person.account ~= account) then
    return {'not_found'}
end
return {'ok', person}

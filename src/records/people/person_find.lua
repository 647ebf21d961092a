-- One of an account's people.
-- ARGV: prefix, account ('' for any), user, whether one who was removed counts, too ('1' or '0')
-- Returns: ok, person_reply(); not_found

local person = person_reply(ARGV[3])
if not person and ARGV[4] == '1' then
    person = person_gone(ARGV[2], ARGV[3])
end
if not person or (ARGV[2] ~= '' and person.account ~= ARGV[2]) then
    return {'not_found'}
end
return {'ok', person}

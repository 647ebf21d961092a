-- One of an account's people.
-- ARGV: prefix, account ('' for any), user
-- Returns: ok, person_reply(); not_found

local person = person_reply(ARGV[3])
if not person[1] or (ARGV[2] ~= '' and person[1][2] ~= ARGV[2]) then
    return {'not_found'}
end
return {'ok', person}

-- A page of an account's people, newest first.
-- ARGV: prefix, account, #limit, after (a user; '' for none)
-- Returns: ok, has_more (0 or 1), person_reply()...

local people = people_index(account)
if not people then
    return {'again'}
end
local ids = redis.call('ZREVRANGEBYLEX', people, after ~= '' and '(' .. after or '+', '-',
                       'LIMIT', 0, limit + 1)
local reply = {'ok', #ids > limit and 1 or 0}
for i = 1, math.min(limit, #ids) do
    local person = person_reply(ids[i])
    if not person then
        error('a listed user of ' .. account .. ' does not exist')
    end
    reply[i + 2] = person
end
return reply

-- A page of an account's people, newest first.
-- ARGV: prefix, account, limit, user to start after ('' for none)
-- Returns: ok, has_more (0 or 1), person_reply()...

local limit, people = tonumber(ARGV[3]), people_index(ARGV[2])
if not people then
    return {'again'}
end
local ids = redis.call('ZREVRANGEBYLEX', people, ARGV[4] ~= '' and '(' .. ARGV[4] or '+', '-',
                       'LIMIT', 0, limit + 1)
local reply = {'ok', #ids > limit and 1 or 0}
for i = 1, math.min(limit, #ids) do
    local person = person_reply(ids[i])
    if not person then
        error('a listed user of ' .. ARGV[2] .. ' does not exist')
    end
    reply[i + 2] = person
end
return reply

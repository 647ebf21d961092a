-- A page of an account's invitations that can be used, newest first. Others that it meets are removed.
-- ARGV: prefix, account, #limit, after (an id; '' for none)
-- Returns: ok, has_more (0 or 1), link_reply()...

local now = now_ms()
local found, has_ended = {}, false
for _, member in ipairs(redis.call('ZREVRANGEBYLEX', K.account_invitations(account), after ~= '' and '(' .. after or '+', '-',
                                   'LIMIT', 0, limit + 1)) do
    local link = invitation_read(account, member, now)
    found[#found + 1] = link
    has_ended = has_ended or not link
end
if has_ended then
    return {'again'}
end
local reply = {'ok', #found > limit and 1 or 0}
for i = 1, math.min(limit, #found) do
    reply[i + 2] = link_reply(found[i])
end
return reply

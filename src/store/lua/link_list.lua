-- A page of an account's invitations that can be used, newest first. Others that it meets are removed.
-- ARGV: prefix, account, limit, id to start after ('' for none)
-- Returns: ok, has_more (0 or 1), link_reply()...

local account, limit, now = ARGV[2], tonumber(ARGV[3]), now_ms()
local invitations, found, has_ended = K.account_invitations(account), {}, false
for _, member in ipairs(redis.call('ZREVRANGEBYLEX', invitations, ARGV[4] ~= '' and '(' .. ARGV[4] or '+', '-',
                                   'LIMIT', 0, limit + 1)) do
    local digest, email = member:match('^%S+ (%S+) (%S+)$')
    local link = digest and link_read(digest, now)
    if link then
        found[#found + 1] = link
    else
        has_ended = true
        redis.call('ZREM', invitations, member)
        if email and redis.call('HGET', K.account_invited(account), email) == digest then
            redis.call('HDEL', K.account_invited(account), email)
        end
    end
end
if has_ended then
    return {'again'}
end
local reply = {'ok', #found > limit and 1 or 0}
for i = 1, math.min(limit, #found) do
    reply[i + 2] = link_reply(found[i])
end
return reply

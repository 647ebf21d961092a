-- A page of an account's invitations that can be used, newest first. Others that it meets are removed.
-- ARGV: prefix, account, limit, id to start after ('' for none)
-- Returns: ok, has_more (0 or 1), link_reply()...

local account, limit, now = ARGV[2], tonumber(ARGV[3]), now_ms()
local invitations = K.account_invitations(account)
local from, found = ARGV[4] ~= '' and '(' .. ARGV[4] or '+', {}
repeat
    local members = redis.call('ZREVRANGEBYLEX', invitations, from, '-', 'LIMIT', 0, limit + 1)
    for _, member in ipairs(members) do
        local digest, email = member:match('^%S+ (%S+) (%S+)$')
        local link = digest and link_read(digest, now)
        from = '(' .. member
        if link then
            found[#found + 1] = link
        else
            redis.call('ZREM', invitations, member)
            if email and redis.call('HGET', K.account_invited(account), email) == digest then
                redis.call('HDEL', K.account_invited(account), email)
            end
        end
    end
until #found > limit or #members == 0
local reply = {'ok', #found > limit and 1 or 0}
for i = 1, math.min(limit, #found) do
    reply[i + 2] = link_reply(found[i])
end
return reply

-- Some of an account's keys, oldest first, exactly as stored. For commands only.
-- ARGV: prefix, account, set ('<class>:<state>'), after (an id; '' for the first), limit
-- Returns: ok, {id, digest, key record}...

local reply = {'ok'}
local from = after ~= '' and '(' .. after or '-'
for _, id in ipairs(redis.call('ZRANGEBYLEX', K.account_keys(account, set), from, '+', 'LIMIT', 0, limit)) do
    local digest = redis.call('GET', K.key_id(id)) or ''
    reply[#reply + 1] = {id, digest, redis.call('GET', K.key(digest)) or ''}
end
return reply

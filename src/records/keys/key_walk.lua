-- Some of an account's keys, oldest first, exactly as stored. For commands only.
-- ARGV: prefix, account, set ('<class>:<state>'), id to start after ('' for the first), limit
-- Returns: ok, {id, digest, key record}...

local reply = {'ok'}
local from = ARGV[4] ~= '' and '(' .. ARGV[4] or '-'
for _, id in ipairs(redis.call('ZRANGEBYLEX', K.account_keys(ARGV[2], ARGV[3]), from, '+', 'LIMIT', 0, ARGV[5])) do
    local digest = redis.call('GET', K.key_id(id)) or ''
    reply[#reply + 1] = {id, digest, redis.call('GET', K.key(digest)) or ''}
end
return reply

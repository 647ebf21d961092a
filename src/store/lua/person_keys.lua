-- The active keys in one set of an account that a user made, or that were made with keys of the user's making. The work
-- of one call is bounded by the limit.
-- ARGV: prefix, account, user, set ('<class>:active'), id to start after ('' for the first), most keys to look at
-- Returns: ok, last id looked at ('' if that was the end), {id, whether the user made it (1) or one of its keys (0)}...
--   In the first call for a user (set ''): ok, '', keys that an earlier call for the user revoked...

local MAKERS_MAX = 16

local account, user, set = ARGV[2], ARGV[3], ARGV[4]
if set == '' then
    local reply = {'ok', ''}
    for _, id in ipairs(redis.call('SMEMBERS', K.user_ended_keys(user))) do
        reply[#reply + 1] = {id, 1}
    end
    return reply
end

local function maker_of(record)
    return record and record.rest:match('\nby=([^\n]+)')
end

-- Whether the user is at the beginning of a chain of keys that made each other.
local function comes_from_user(by)
    for _ = 1, MAKERS_MAX do
        if not by or by == user or by:sub(1, 4) ~= 'key_' then
            return by == user
        end
        by = maker_of(key_record(by))
    end
    return false
end

local most = tonumber(ARGV[6])
local ids = redis.call('ZRANGEBYLEX', K.account_keys(account, set), ARGV[5] ~= '' and '(' .. ARGV[5] or '-', '+',
                       'LIMIT', 0, most)
local reply = {'ok', #ids == most and ids[most] or ''}
for _, id in ipairs(ids) do
    local by = maker_of(key_record(id))
    if comes_from_user(by) then
        reply[#reply + 1] = {id, by == user and 1 or 0}
    end
end
return reply

-- A page of an account's keys, newest first, merged from several sets. The work is bounded by the limit and the number
-- of sets, not by the number of keys.
-- ARGV: prefix, account, #limit, direction, cursor ('' for none), sets...
-- direction: 'older' lists the keys after the cursor, 'newer' those right before it. set: '<class>:<state>', see key_set()
--   in the prelude.
-- Returns: ok, has_more (0 or 1: more keys in that direction), key...

local newer = direction == 'newer'

-- Ids of different kinds have different prefixes, so the ULIDs after them are compared.
local function ulid(id)
    return id:sub(-26)
end

local function ids_of(set)
    local name = K.account_keys(account, set)
    local id_prefix = set:sub(1, 2) == 'dk' and 'dev_' or 'key_'
    local from = cursor ~= '' and '(' .. id_prefix .. ulid(cursor)
    if newer then
        return redis.call('ZRANGEBYLEX', name, from or '-', '+', 'LIMIT', 0, limit + 1)
    end
    return redis.call('ZREVRANGEBYLEX', name, from or '+', '-', 'LIMIT', 0, limit + 1)
end

local ids = {}
for i = FIRST, #ARGV do
    for _, id in ipairs(ids_of(ARGV[i])) do
        ids[#ids + 1] = id
    end
end
table.sort(ids, function(a, b)
    if newer then
        return ulid(a) < ulid(b)
    end
    return ulid(a) > ulid(b)
end)

local count = math.min(#ids, limit)
local reply = {'ok', #ids > limit and 1 or 0}
for i = 1, count do
    local record = key_record(ids[newer and count + 1 - i or i])
    if not record then
        error('a listed key of ' .. account .. ' does not exist')
    end
    reply[i + 2] = key_reply(record, true)
end
return reply

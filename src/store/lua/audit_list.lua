-- A page of an account's trail, newest first.
-- ARGV: prefix, account, most entries wanted, entry id to begin behind ('' none; 'none' a cursor of another account)
-- Returns: ok, {entry id, {field, value...}, name of the actor, name of the target ('' none)}...; not_found: the cursor
--   is another account's

local account, after = ARGV[2], ARGV[4]
if after == 'none' then
    return {'not_found'}
end

-- Few ids stand in many entries.
local names = {['']= ''}
local function name(id)
    names[id] = names[id] or name_of(account, id)
    return names[id]
end

local reply = {'ok'}
for _, entry in ipairs(redis.call('XREVRANGE', K.audit(account), after == '' and '+' or '(' .. after, '-', 'COUNT', ARGV[3])) do
    local fields = {}
    for i = 1, #entry[2], 2 do
        fields[entry[2][i]] = entry[2][i + 1]
    end
    reply[#reply + 1] = {entry[1], entry[2], name(fields.actor or ''), name(fields.target or '')}
end
return reply

-- A page of an account's trail, newest first.
-- ARGV: prefix, account, most entries wanted, entry id to begin behind ('' none; 'none' a cursor of another account)
-- Returns: ok, {entry id, {field, value...}}...; not_found: the cursor is another account's

local after = ARGV[4]
if after == 'none' then
    return {'not_found'}
end
local entries = redis.call('XREVRANGE', K.audit(ARGV[2]), after == '' and '+' or '(' .. after, '-', 'COUNT', ARGV[3])
table.insert(entries, 1, 'ok')
return entries

-- Behind each script's body, which is the function run(). KEYS[1], where the caller gives it, is '<prefix>store:<id>': the
-- store that he knows. In another one, or one that was emptied, nothing is read and nothing is written.
-- Returns: what run() does; or other_store, the id that is there ('' none)

local known = KEYS[1] and KEYS[1]:sub(#prefix + #'store:' + 1)
local id = known and redis.call('HGET', K.store(), 'id')
if known and known ~= id then
    return {'other_store', id or ''}
end
return run()

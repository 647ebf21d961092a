-- Behind each script's body, which is the function run(). KEYS[1], where the caller gives it, is '<prefix>store:<id>': the
-- store that he knows. In another one, or one that was emptied, nothing is read and nothing is written. A node that has
-- acknowledged changes goes on with ':<node>:<number of the last>', and a change with ':<its own number>', which is kept
-- beside what it changes: a store that holds a lower one than was acknowledged has lost something.
-- Returns: what run() does; or other_store, the id that is there ('' none); or behind, the number that is there

local known, node, acknowledged, number
if KEYS[1] then
    known, node, acknowledged, number = KEYS[1]:sub(#prefix + 1):match('^store:(%x+):?(%x*):?(%d*):?(%d*)$')
    local there = redis.call('HMGET', K.store(), 'id', node)
    local held = tonumber(there[2] or '0')
    if there[1] ~= known then
        return {'other_store', there[1] or ''}
    end
    if held < tonumber(acknowledged == '' and '0' or acknowledged) then
        return {'behind', held}
    end
    -- A connection that was given up may bring an earlier one later.
    number = number ~= '' and tonumber(number) > held and number or nil
end
local reply = run()
if number and reply[1] == 'ok' then
    redis.call('HSET', K.store(), node, number)
end
return reply

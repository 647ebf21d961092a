-- Follows each script's body, which becomes the function run(). KEYS[1] may be '<prefix>store:<id>': the store that the
-- caller expects, by its id or the one before its last upgrade. In another or an emptied store nothing is read or
-- written. A node that has acknowledged
-- changes appends ':<node>:<number of the last one>', and to a change ':<its own number>', which is stored together
-- with the change. A store with a lower number than was acknowledged has lost something.
-- Returns: what run() returns; moved, where to (store_leave.lua); other_store, the id found ('' for none); behind, the
-- number found. If events were written
-- and the caller writes an audit log: events, {account, class, entry, {field, value...}, copy}..., what run() returns

local known, node, acknowledged, number
if KEYS[1] and KEYS[1]:sub(#prefix + 1, #prefix + 6) == 'store:' then
    known, node, acknowledged, number = KEYS[1]:sub(#prefix + 1):match('^store:(%x+):?(%x*):?(%d*):?(%d*)$')
    local there = redis.call('HMGET', K.store(), 'id', node, 'former', 'moved')
    local held = tonumber(there[2] or '0')
    if there[4] then
        return {'moved', there[4]}
    end
    if there[1] ~= known and not (there[1] and there[3] == known) then
        return {'other_store', there[1] or ''}
    end
    if held < tonumber(acknowledged == '' and '0' or acknowledged) then
        return {'behind', held}
    end
    -- After a reconnect, a change with a lower number can still arrive on the old connection.
    number = number ~= '' and tonumber(number) > held and number or nil
end
local reply = run()
if number and reply[1] == 'ok' then
    redis.call('HSET', K.store(), node, number)
end
if #events > 0 and log_chain then
    return {'events', events, reply}
end
return reply

-- Follows each script's body, which becomes the function run(). KEYS[1] may be '<prefix>store:<id>': the store that the
-- caller expects, by its id or the one before its last upgrade. In another or an emptied store nothing is read or
-- written. A node appends ':<maker>:<how many of its changes that end something were answered>'. A store with a lower
-- number has lost something, and one that misses endings of anybody decides nothing (src/lease/README.md, rule 13); a
-- command leaves the number out, and runs. ':ends' or ':other' comes with a change: it is numbered, in the same step.
-- Returns: what run() returns; moved, where to (store_leave.lua); other_store, the id found ('' for none); behind, the
-- number found; missing, how many. Of a numbered change: numbered, the numbers of its maker's chain (ends, all), what
-- run() returns. If events were written and the caller writes an audit log: events, {account, class, entry,
-- {field, value...}, copy}..., one of these

if STORE_ID then
    local there = redis.call('HMGET', K.store(), 'id', 'former', 'missing', 'moved')
    if there[4] then
        return {'moved', there[4]}
    end
    if there[1] ~= STORE_ID and not (there[1] and there[2] == STORE_ID) then
        return {'other_store', there[1] or ''}
    end
    if ENDS_ANSWERED ~= '' and there[3] then
        return {'missing', tonumber(there[3])}
    end
    if ENDS_ANSWERED ~= '' and ENDS_ANSWERED ~= '0' and chain_read(MAKER) < tonumber(ENDS_ANSWERED) then
        return {'behind', (chain_read(MAKER))}
    end
end
local reply = run()
if STORE_ID and CHANGE ~= '' and reply[1] == 'ok' then
    local ends, all, low = chain_read(MAKER)
    ends, all = ends + (CHANGE == 'ends' and 1 or 0), all + 1
    chain_write(MAKER, ends, all, low)
    reply = {'numbered', ends, all, reply}
end
if #events > 0 and log_chain then
    return {'events', events, reply}
end
return reply

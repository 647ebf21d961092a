-- Part of the prelude (engine/lua/prelude.lua): events as they are read.

-- The name of a key or the email of a user in the account; '' for anything else. id must not be a name chosen by a
-- stranger, because that could look like an id.
local function name_of(account, id)
    local kind = id:match('^(%l+)_%w+$')
    if kind == 'key' or kind == 'dev' then
        local key = key_record(id)
        return key and key.account == account and key.name or ''
    end
    local user = kind == 'usr' and user_record(id)
    if kind == 'usr' and not user then
        return redis.call('HGET', K.account_gone(account), id) or ''
    end
    return user and user.account == account and user.email or ''
end

-- An event is named '<ms>-<number>'. The number has the class in the upper 2 of its 32 bits and the entry's sequence
-- below, so that entries of the same millisecond have an order.
local EVENT_SEQUENCES = 2 ^ 30

local function event_number(class, sequence)
    return class * EVENT_SEQUENCES + sequence
end

local function event_name(class, entry)
    local ms, sequence = entry:match('^(%d+)-(%d+)$')
    return ms .. '-' .. string.format('%d', event_number(class, sequence))
end

-- What is noted: the store's id, name of the event ('' if it is not known), since when no node accepts what was revoked
-- (0: not known), nodes, waited for.
local function ending_read(account, id)
    local noted = redis.call('HGET', K.key_endings(account), id) or '- -'
    local class, entry, effective, nodes, waited_for = noted:match('^(%S+) (%S+) ?(%d*) ?(%d*) ?(%d*)$')
    if not class then
        error('the note about the revocation of ' .. id .. ' is malformed')
    end
    local event = ''
    for number = 0, #AUDIT_CLASSES do
        if AUDIT_CLASSES[number] == class then
            event = event_name(number, entry)
        end
    end
    return redis.call('HGET', K.store(), 'id') or '', event, tonumber(effective) or 0, tonumber(nodes) or 0,
           tonumber(waited_for) or 0
end

-- The class and, as text, the sequence in an event's number.
local function event_class(number)
    return math.floor(number / EVENT_SEQUENCES), string.format('%d', number % EVENT_SEQUENCES)
end

-- Whether the target of such an event is a name that a stranger has chosen.
local function is_event_on_name(event)
    return event:sub(1, 7) == 'device.'
end

local TARGET_KINDS = {key = 'api_key', dev = 'device_key', usr = 'user', inv = 'invitation'}

-- An event as all scripts return it: {event, {field, value...}, actor's name, target's name ('' for none), kind of
-- target: 'api_key', 'device_key', 'user', 'device' (the target is a name that the device gave itself) or ''}.
-- names: a cache for one reply, because a few ids appear in many events.
local function event_reply(account, class, entry, names)
    local fields = {}
    for f = 1, #entry[2], 2 do
        fields[entry[2][f]] = entry[2][f + 1]
    end
    local target, actor = fields.target or '', fields.actor or ''
    local kind = is_event_on_name(fields.type or '') and 'device' or TARGET_KINDS[target:match('^(%l+)_%w+$') or ''] or ''
    names[''] = ''
    names[actor] = names[actor] or name_of(account, actor)
    if kind ~= 'device' then
        names[target] = names[target] or name_of(account, target)
    end
    return {event_name(class, entry[1]), entry[2], names[actor], kind == 'device' and '' or names[target], kind}
end

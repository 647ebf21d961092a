-- A page of an account's trail, newest first, merged from all classes. The work is bounded by the size of the page, not
-- of the trail.
-- ARGV: prefix, account, most entries wanted, cursor ('' for none; 'none' if it belongs to another account)
--   or, to follow the trail, oldest first: prefix, account, most entries wanted, 'newer', the last entry read of each
--   class ('0-0' for none). A class has its own cursor, because entries of one millisecond may be written after those
--   of another class were read.
-- An event is named '<ms>-<number>'. The number has the class in the upper 2 of its 32 bits and the entry's sequence
-- below, so that entries of the same millisecond have an order.
-- Returns: ok, {event, {field, value...}, actor's name, target's name ('' for none), kind of target: 'api_key',
--   'device_key', 'user', 'device' (the target is a name that the device gave itself) or ''}...; not_found: the cursor
--   belongs to another account

local SEQUENCES = 2 ^ 30

local account, most, after = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local follows = after == 'newer'
if after == 'none' then
    return {'not_found'}
end
local after_ms, after_number = after:match('^(%d+)-(%d+)$')

-- The start of a class's entries after the cursor.
local function newest_of(class)
    if not after_ms then
        return '+'
    end
    local after_class = math.floor(after_number / SEQUENCES)
    if class < after_class then
        return after_ms
    end
    return '(' .. after_ms .. '-' .. (class == after_class and string.format('%d', after_number % SEQUENCES) or '0')
end

local entries = {}
for class = 0, #AUDIT_CLASSES do
    local stream = K.audit(account, AUDIT_CLASSES[class])
    local found = follows and redis.call('XRANGE', stream, '(' .. ARGV[5 + class], '+', 'COUNT', most)
        or redis.call('XREVRANGE', stream, newest_of(class), '-', 'COUNT', most)
    for _, entry in ipairs(found) do
        local ms, sequence = entry[1]:match('^(%d+)-(%d+)$')
        entries[#entries + 1] = {ms = ms, number = class * SEQUENCES + sequence, fields = entry[2]}
    end
end
table.sort(entries, function(a, b)
    if follows then
        a, b = b, a
    end
    if a.ms ~= b.ms then
        return tonumber(a.ms) > tonumber(b.ms)
    end
    return a.number > b.number
end)

local KINDS = {key = 'api_key', dev = 'device_key', usr = 'user'}

local function kind_of(event, target)
    return event:sub(1, 7) == 'device.' and 'device' or KINDS[target:match('^(%l+)_%w+$') or ''] or ''
end

-- A cache, because a few ids appear in many entries.
local names = {[''] = ''}
local function name(id)
    names[id] = names[id] or name_of(account, id)
    return names[id]
end

local reply = {'ok'}
for i = 1, math.min(most, #entries) do
    local entry, fields = entries[i], {}
    for f = 1, #entry.fields, 2 do
        fields[entry.fields[f]] = entry.fields[f + 1]
    end
    local target = fields.target or ''
    local kind = kind_of(fields.type or '', target)
    reply[i + 1] = {entry.ms .. '-' .. string.format('%d', entry.number), entry.fields, name(fields.actor or ''),
                    kind == 'device' and '' or name(target), kind}
end
return reply

-- A slice of a search in an account's trail, newest first, merged from all classes. Redis serves nobody else meanwhile,
-- so the work is bounded: a search that is to go on does so from the position that the slice returns.
-- ARGV: prefix, account, #most (events wanted), after (a position; '' for none; 'none' if it belongs to another
--   account), #most_read (entries), kind, actor, target, address, since, before, is_test ('1' for events of test keys
--   alone), reader (the actor who reads), credential (its, as in actor_refused())
-- kind: 'api_key.created', or a family, 'api_key' or 'api_key.'; actor and target: an id, or any other text; address: a block,
--   '<bits> <16 bytes in hex>', IPv4 as ::ffff:0:0/96; since, before: ms, the latter not included. Each '' for any.
-- Returns: as actor_refused(); ok, the position reached ('' if the trail has ended), events as in event_reply()...; not_found: the position
--   belongs to another account

local FIRST_READ, LAST_READ = 16, 64

local test_only, family = is_test == '1', kind:match('^([^.]+)%.?$')
local refused = actor_refused(credential, reader, account)
if refused then
    return refused
end
if after == 'none' then
    return {'not_found'}
end

-- An address in hex, like the block; '' for anything else.
local function hex_of(ip)
    local left, a, b, c, d = ip:match('^(.-)(%d+)%.(%d+)%.(%d+)%.(%d+)$')
    if a then
        ip = (left == '' and '::ffff:' or left) .. string.format('%x:%x', a * 256 + b, c * 256 + d)
    elseif not ip:match('^[%x:]+$') then
        return ''
    end
    local groups, _, before_gap = {}, (ip:match('^(.-)::') or ''):gsub('%x+', '')
    for group in ip:gmatch('%x+') do
        groups[#groups + 1] = string.format('%04x', tonumber(group, 16))
    end
    for _ = #groups + 1, 8 do
        table.insert(groups, before_gap + 1, '0000')
    end
    return table.concat(groups)
end

local bits, block = address:match('^(%d+) (%x+)$')

-- A cache, because a few addresses appear in many entries.
local in_block = {}
local function is_from(ip)
    if in_block[ip] == nil then
        local hex, whole, rest = hex_of(ip), math.floor(bits / 4), bits % 4
        local function rounded(digits)
            return math.floor(tonumber(digits:sub(whole + 1, whole + 1), 16) / 2 ^ (4 - rest))
        end
        in_block[ip] = hex ~= '' and hex:sub(1, whole) == block:sub(1, whole)
            and (rest == 0 or rounded(hex) == rounded(block))
    end
    return in_block[ip]
end

local function is_test_key(id)
    local key = id:match('^%l+_%w+$') and key_record(id)
    return key and key.account == account and key.mode == 'test'
end

-- A device may have named itself like an id, which is not what a search for the id is for.
local function is_target(event)
    return event[6] == target and not (is_event_on_name(event[2]) and target:match('^%l+_%w+$'))
end

-- audit() writes type, actor, target and address first, in this order.
local function is_wanted(event, class)
    return (kind == '' or event[2] == kind or (family and event[2]:match('^[^.]+') == family))
        and (actor == '' or event[4] == actor) and (target == '' or is_target(event))
        and (address == '' or is_from(event[8] or ''))
        and (not test_only or AUDIT_CLASSES[class] == 'test' or is_test_key(event[6] or ''))
end

-- Where a class's entries begin: after the position, and before `before`.
local function newest_of(class)
    local ms, number = after:match('^(%d+)-(%d+)$')
    if not ms or (before ~= '' and tonumber(before) <= tonumber(ms)) then
        return before == '' and '+' or '(' .. before .. '-0'
    end
    local after_class, sequence = event_class(number)
    if class < after_class then
        return ms
    end
    return '(' .. ms .. '-' .. (class == after_class and sequence or '0')
end

-- The unread entries of each class that may have events for the caller.
local unread, read = {}, 0
for class = 0, #AUDIT_CLASSES do
    if not test_only or AUDIT_CLASSES[class] == 'test' or AUDIT_CLASSES[class] == 'refused' then
        unread[#unread + 1] = {class = class, from = newest_of(class), at = 1, count = FIRST_READ / 2, entries = {}}
    end
end

-- Reads on in a class whose entries are used up. They are more each time, because what is read and not used is read
-- again by the next slice. False: the slice may not read any more.
local function refill(u)
    if u.at <= #u.entries or u.from == '' then
        return true
    end
    if read >= most_read and u.count >= FIRST_READ then
        return false
    end
    u.count = math.min(u.count * 2, LAST_READ)
    u.entries = redis.call('XREVRANGE', K.audit(account, AUDIT_CLASSES[u.class]), u.from, since == '' and '-' or since,
                           'COUNT', u.count)
    u.at, read = 1, read + #u.entries
    u.from = #u.entries == u.count and '(' .. u.entries[#u.entries][1] or ''
    return true
end

-- The class with the newest unread entry. nil: there is none. false: unknown, because the slice may not read any more.
local function newest()
    local found, found_ms
    for _, u in ipairs(unread) do
        if not refill(u) then
            return false
        end
        local entry = u.entries[u.at]
        local ms = entry and tonumber(entry[1]:match('^%d+'))
        if ms and (not found or ms >= found_ms) then
            found, found_ms = u, ms
        end
    end
    return found
end

local reply, names, position, u = {'ok', ''}, {}, after, newest()
while u and #reply - 2 < most do
    local entry = u.entries[u.at]
    u.at = u.at + 1
    position = {u.class, entry[1]}
    if is_wanted(entry[2], u.class) then
        reply[#reply + 1] = event_reply(account, u.class, entry, names)
    end
    u = newest()
end
if u ~= nil then
    reply[2] = type(position) == 'table' and event_name(unpack(position)) or position
end
return reply

-- Part of the prelude (engine/lua/prelude.lua): the record of a key, whom it goes back to, and how many an account may have.

-- The sorted set of the account that holds a key's id: '<class>:<state>'.
local function key_set(kind, mode, state)
    return (kind == 'device_key' and 'dk' or 'ak-' .. mode) .. ':' .. state
end

-- A key's record is one string, so that a check is one GET: a line of fields separated by blanks, the name last, then
-- lines 'name=value', among them the MAC. src/core/key.c describes it. embed.c inserts the field names here.
-- Scripts change only `revoked` and copy the rest: '-' for none; a time; or '@' and the time when the key will be
-- revoked. That alone depends on a clock: a key that was revoked stays so whatever the time.
local KEY_FIELDS = {@KEY_FIELDS@}
local KEY_PATTERN = '^' .. string.rep('(%S+) ', #KEY_FIELDS - 1) .. '([^\n]+)(.*)$'

-- Judges whether a scheduled revocation has taken effect: `ends` is set until then, `revoked` and `is_due` from then on,
-- until it is written down (key_end_due()). now: nil: the store's time.
local function key_judge_end(record, now)
    if not record.scheduled then
        return
    end
    now = now or store_ms()
    record.is_due = tonumber(record.scheduled) <= now
    record.ends = not record.is_due and record.scheduled or nil
    -- No key is revoked before it was created, which is by a node's clock.
    record.revoked = record.is_due
        and string.format('%.0f', math.max(tonumber(record.created), tonumber(record.scheduled))) or nil
end

local function key_unpack(packed)
    local values = {string.match(packed, KEY_PATTERN)}
    if #values == 0 then
        error('malformed key record')
    end
    local record = {rest = values[#values]}
    for i, field in ipairs(KEY_FIELDS) do
        record[field] = values[i]
    end
    record.scheduled = record.revoked:match('^@(%d+)$')
    record.revoked = record.revoked ~= '-' and record.revoked or nil
    key_judge_end(record)
    record.kind = record.id:sub(1, 4) == 'dev_' and 'device_key' or 'api_key'
    return record
end

local function key_pack(record)
    local values = {}
    for i, field in ipairs(KEY_FIELDS) do
        values[i] = record[field] or field == 'revoked' and record.ends and '@' .. record.ends or '-'
    end
    return table.concat(values, ' ') .. record.rest
end

-- The record of a key, and its digest, which is also in the record. nil if the id is unknown, or was discarded before
-- its insertion arrived ('').
local function key_record(id)
    local digest = redis.call('GET', K.key_id(id))
    if not digest or digest == '' then
        return nil
    end
    local packed = redis.call('GET', K.key(digest))
    local record = packed and key_unpack(packed)
    if not record or record.id ~= id then
        error('the record of ' .. id .. ' is missing or belongs to another key')
    end
    record.digest = digest
    return record, digest
end

-- What a line of a record says that its MAC binds; nil: it has no such line.
local function key_field(record, name)
    return (record.rest:match('^(.-)\nm=') or record.rest):match('\n' .. name .. '=([^\n]+)')
end

-- The person that a key goes back to: 'usr_...'; '-': none, because an operator made the first key (one without 'by':
-- every release names any other maker); '': not known. Records of before 0.4 do not say it, so the keys that made one
-- another are followed: a record's maker never changes, and what may have made one stays (key_burials.lua). The steps of
-- one script are bounded, because a tenant can have made a chain of any length: closely where anybody may ask at any
-- time, widely where it matters that none is missed.
local ORIGIN_STEPS_ALL = 2000
local origins, origin_steps, origin_steps_max = {}, 0, 256

local function key_origin(record)
    local passed, origin = {}, nil
    while record and not origin do
        local by = key_field(record, 'by') or '-'
        origin = origins[record.id] or key_field(record, 'origin') or (by:sub(1, 4) ~= 'key_' and by) or nil
        passed[#passed + 1] = record.id
        origin_steps = origin_steps + (origin and 0 or 1)
        local did, maker = pcall(key_record, origin and '' or origin_steps <= origin_steps_max and by or '')
        record = did and maker or nil
    end
    for _, id in ipairs(origin and passed or {}) do
        origins[id] = origin
    end
    return origin or ''
end

-- While it is found out which keys go back to a person, nothing is made that would be one of them, so that none is missed.
-- The mark holds the name of the call that looks; a later call takes it over.
local LEAVING_MS = 15000

-- record: of a new key. Returns nil, or the script's reply: 'leaving'.
local function leaving_refused(record)
    origin_steps_max = ORIGIN_STEPS_ALL
    local account, by = record.account, key_field(record, 'by') or ''
    local marks = redis.call('EXISTS', K.account_leaving(account, key_origin(record)), K.account_leaving(account, by),
                             K.account_leaving(account, key_field(record, 'replacer') or ''))
    return marks > 0 and {'leaving'} or nil
end

-- Those of the keys that are known, and not malformed.
local function key_records(ids)
    local digest_names, names, records = {}, {}, {}
    for i, id in ipairs(ids) do
        digest_names[i] = K.key_id(id)
    end
    local digests = redis.call('MGET', unpack(digest_names))
    for i = 1, #ids do
        names[i] = K.key(digests[i] or '')
    end
    local packed = redis.call('MGET', unpack(names))
    for i, id in ipairs(ids) do
        local did, record = pcall(key_unpack, packed[i])
        if did and record.id == id then
            record.digest = digests[i]
            records[#records + 1] = record
        end
    end
    return records
end

-- The usage of a key is one string, so that a batch costs one read and one write of a hash: last use in ms, total uses,
-- last day of use, uses on that day. Uses on earlier days are in one hash per day. The string is binary, because each
-- batch reads and writes it for each of its keys, and text would take Lua four times as long.
local USE_FORMAT, USE_BYTES = '<I6I6c10I6', 28

local function use_pack(last, total, day, on_day)
    return struct.pack(USE_FORMAT, last, total, day, on_day)
end

local function use_unpack(packed)
    if #packed ~= USE_BYTES then
        error('the usage of a key has ' .. #packed .. ' bytes, not ' .. USE_BYTES)
    end
    return struct.unpack(USE_FORMAT, packed)
end

-- A key as all scripts return it: {packed, last use (false: never), digest}, and when it will be revoked, if that is
-- known. Packed, it is as it is now: active or revoked. with_origin: if the record does not say whom a key that a key made
-- goes back to, key_origin() comes last.
local function key_reply(record, with_origin)
    local use = redis.call('HGET', K.key_uses(record.account), record.id)
    local ends = record.ends
    record.ends = nil
    local packed = key_pack(record)
    record.ends = ends
    local reply = {packed, use and string.format('%d', (use_unpack(use))), record.digest, ends}
    if with_origin and not key_field(record, 'origin') and (key_field(record, 'by') or ''):sub(1, 4) == 'key_' then
        reply[4], reply[5] = ends or false, key_origin(record)
    end
    return reply
end

-- The limits of an account's keys are '<active> <made in a day>' (0: none; the second may be missing).
local KEYS_MADE_MS = 24 * 60 * 60 * 1000

-- Whether an account has reached its maximum of active keys of that kind, or of keys that were made within a day: those
-- that were revoked remain, too. A live key counts only live keys, so test keys, which are handed out freely, cannot use
-- up its places. Keys that replace others have as many places again, because the others end.
local function keys_are_full(account, kind, mode, limits, is_replacement)
    local most, made_most = limits:match('^(%d+) ?(%d*)$')
    local count, made = 0, 0
    for _, set in ipairs(kind == 'device_key' and {'dk'} or mode == 'live' and {'ak-live'} or {'ak-test', 'ak-live'}) do
        count = count + redis.call('ZCARD', K.account_keys(account, set .. ':active'))
        made = made + tonumber(redis.call('GET', K.keys_made(account, set)) or '0')
    end
    most, made_most = tonumber(most), tonumber(made_most) or 0
    return (most > 0 and count >= (is_replacement and 2 * most or most)) or (made_most > 0 and made >= made_most)
end

local function keys_made_count(account, kind, mode)
    local name = K.keys_made(account, kind == 'device_key' and 'dk' or 'ak-' .. mode)
    if redis.call('INCR', name) == 1 then
        redis.call('PEXPIRE', name, KEYS_MADE_MS)
    end
end

-- Part of the prelude (engine/lua/prelude.lua): keys are added, and end.

-- Why a key cannot be added: 'refused': no such account; 'suspended': it is suspended or closed; 'conflict': the digest
-- or id exists. nil: it can be.
local function key_add_refusal(digest, record)
    if not exists(K.account(record.account)) then
        return 'refused'
    end
    if account_status(record.account) ~= 'active' then
        return 'suspended'
    end
    return (exists(K.key(digest)) or exists(K.key_id(record.id))) and 'conflict' or nil
end

-- Keeps when a key will be revoked, as its record says. now: the first that the time can be.
local function key_end_keep(record, now)
    if not exists(K.key_ends()) then
        redis.call('HSET', K.store(), 'time', string.format('%.0f', now))
    end
    redis.call('ZADD', K.key_ends(), record.ends, record.id)
end

-- What a record says of its end behind its MAC: 'end=<said> <set> <before> <by>'. said: when it was said when the key ends,
-- or that it does not, by the store's time, and always later than before: of two that are told after a failover, the later
-- one counts. The others are of the last
-- replacement: the end that it has set, which is its own only as long as it is the key's; the end that stood before;
-- the key that replaces this one. '-': none.
local END_LINE = '\nend=(%d+) (%S+) (%S+) (%S+)'

local function key_end_line(record)
    local said, set, before, by = record.rest:match(END_LINE)
    return {said = tonumber(said or '0'), set = set or '-', before = before or '-', by = by or '-'}
end

local function key_end_line_put(record, line)
    record.rest = record.rest:gsub(END_LINE, '')
        .. string.format('\nend=%.0f %s %s %s', line.said, line.set, line.before, line.by)
end

-- The end of a key that it hands on to what it makes: one that was scheduled, or that it inherited itself; not one that
-- a replacement has set. nil: none.
local function key_end_lasting(record)
    local line = key_end_line(record)
    if line.set ~= record.ends then
        return record.ends
    end
    return line.before ~= '-' and line.before or nil
end

-- When what is said now of a key's end is said.
local function key_end_say(record)
    record.said = record.said or math.max(key_end_line(record).said + 1, store_ms())
    return string.format('%.0f', record.said)
end

-- Call it before that end is set. by: the key that replaces this one. The end that a replacement before it has found is
-- handed on.
local function key_end_replaces(record, ends, by)
    key_end_line_put(record, {said = key_end_line(record).said, set = ends, before = key_end_lasting(record) or '-', by = by})
end

-- Whether a replacement of the key has set an end that stands, or a sooner one does.
local function key_end_is_replaced(record, line)
    return record.ends and line.set ~= '-' and tonumber(record.ends) <= tonumber(line.set)
end

-- A key that replaces another one has this line behind its MAC until a node has accepted it, which alone proves that its
-- secret arrived: 'now': the other one is then revoked; 'later': it ends when its time has come.
local CONFIRM_LINE = '\nconfirm=(%l+)'

local function key_confirm(record)
    return record.rest:match(CONFIRM_LINE)
end

-- Whether its secret has arrived, as far as anybody knows: what a node notes of a use may be lost, and what it counts comes
-- late.
local function key_in_use(record)
    return not key_confirm(record) or redis.call('HEXISTS', K.key_uses(record.account), record.id) == 1
end

local function key_confirm_put(record, what)
    record.rest = record.rest:gsub(CONFIRM_LINE, '') .. (what and '\nconfirm=' .. what or '')
end

-- The key that this one replaces, if it is still the one that replaces it; nil: it is not, or the other has ended.
local function key_replaced(record)
    local id = key_field(record, 'replaces')
    local did, old = pcall(key_record, id or '')
    return id and did and old and not old.revoked and key_end_line(old).by == record.id and old or nil
end

-- What a key makes ends when the key does, at the latest. new: a record. makers: records; nil ends nothing.
local function key_end_inherit(new, makers)
    for _, maker in ipairs(makers) do
        local ends = not new.revoked and key_end_lasting(maker)
        if ends and (not new.ends or tonumber(ends) < tonumber(new.ends)) then
            new.ends = ends
        end
    end
end

-- The key that makes a change; nil: somebody else does. credential: as for actor_refused().
local function actor_key(credential)
    local packed = redis.call('GET', K.key(credential:match('^key (%S+)$') or ''))
    return packed and key_unpack(packed) or nil
end

-- Adds a key and writes its event, with that data. The record of a decoy is revoked from the start: no node ever accepts
-- it, so there is nothing to publish, and its events are that it was created and revoked. makers: of whom it inherits an
-- end (key_end_inherit()); nil: of nobody. Returns 'ok', or as key_add_refusal().
local function key_add(digest, packed, source, data, makers)
    local record = key_unpack(packed)
    local refusal = key_add_refusal(digest, record)
    if refusal then
        return refusal
    end
    key_end_inherit(record, makers or {})
    redis.call('SET', K.key(digest), record.ends and key_pack(record) or packed)
    if record.ends then
        key_end_keep(record, store_ms())
        data = data or {}
        data.revoke_at = rfc3339(tonumber(record.ends))
    end
    redis.call('SET', K.key_id(record.id), digest)
    local set = key_set(record.kind, record.mode, record.revoked and 'revoked' or 'active')
    local class = audit_class(record, source[1])
    redis.call('ZADD', K.account_keys(record.account, set), 0, record.id)
    audit(record.account, record.kind .. '.created', record.id, source, {class = class, data = data})
    if record.revoked then
        ending_note(record.account, record.id, class,
                    audit(record.account, record.kind .. '.revoked', record.id, source,
                          {class = class, data = {reason = 'decoy'}}))
    end
    return 'ok'
end

-- Since when a key is revoked if it is revoked now. No key is revoked before it was created, which is by a node's clock.
local function revoked_now(record)
    return record.revoked or string.format('%.0f', math.max(tonumber(record.created), now_ms()))
end

-- What becomes of a key, as a message says it: '<id>/<account>/r<since>', '.../e<when it will be revoked>' or '.../n': it
-- will not be; the last two with when that was said, ':<said>'; '.../p<when>:<said>' is an end that a replacement sets. ends:
-- nil: it is revoked now; '': it will not be.
local function key_ending(record, ends)
    local what = not ends and 'r' .. revoked_now(record)
        or (ends == '' and 'n' or (record.replaced and 'p' or 'e') .. ends) .. ':' .. key_end_say(record)
    return record.id .. '/' .. record.account .. '/' .. what
end

-- Publishes that nodes must read keys again, and what becomes of them: in one message, or in one for each if a registered
-- node reads no lists. The last one then carries the barrier, because it comes behind the others. Call it before any
-- write, because it fails if Redis' user may not publish. Keys that are revoked already are published again, because a
-- node may have missed the message. member: to acknowledge to ('-' for none). barrier: its name. registry: as HGETALL
-- returns it. ends: by id, as for key_ending(); nil: all are revoked now.
local function keys_publish(records, member, barrier, registry, ends)
    local digests, endings, reads = {}, {}, registry_reads(registry)
    for i, record in ipairs(records) do
        digests[i], endings[i] = record.digest, key_ending(record, ends and ends[record.id])
    end
    local messages = #digests > 1 and reads >= READS_LISTS and {table.concat(digests, ',')} or digests
    for i, keys in ipairs(messages) do
        local ending = i == #messages and ' ' .. member .. ' ' .. barrier or ' - -'
        if reads >= READS_ENDINGS then
            ending = ending .. change_name() .. ' ' .. table.concat(endings, ',')
        end
        redis.call(PUBLISH, K.invalidations(), keys .. ending)
    end
end

-- Whether the account is that of canary keys (src/core/canary_key.c), which is not stored: it has no lists and no trail.
local CANARY_OWNERS = 'acct_0000000000canary'

local function canary_owns(account)
    return account:sub(1, #CANARY_OWNERS) == CANARY_OWNERS
end

-- Collects the writes of several revocations, so that ends_write() needs one command for all writes of a kind: each
-- command costs Redis more than one further value. For at most 1,000 keys.
local function ends_begin()
    return {records = {}, ZREM = {}, ZADD = {}, HSET = {}}
end

local function ends_add(by_name, name, first, second)
    local values = by_name[name] or {}
    by_name[name] = values
    values[#values + 1] = first
    values[#values + 1] = second
end

local function ends_write(ends)
    if #ends.records > 0 then
        redis.call('MSET', unpack(ends.records))
    end
    for _, command in ipairs({'ZREM', 'ZADD', 'HSET'}) do
        for name, values in pairs(ends[command]) do
            redis.call(command, name, unpack(values))
        end
    end
end

-- Writes the revocation of a key, at record.revoked. at: when the event took place, if not now. ends: from ends_begin(); the caller then calls ends_write(). nil: no
-- further call is needed.
local function key_end(record, source, data, ends, at)
    local name, packed = K.key(record.digest), key_pack(record)
    invalidation_note('key', record.digest, 'id', record.id, 'account', record.account, 'revoked', record.revoked)
    if canary_owns(record.account) then
        redis.call('SET', name, packed, 'KEEPTTL')
        return
    end
    local account, id, here, class = record.account, record.id, ends or ends_begin(), audit_class(record, source[1])
    local entry = audit(account, record.kind .. '.revoked', id, source,
                        {class = class, data = data, at = at})
    ends_add(here, 'records', name, packed)
    ends_add(here.ZREM, K.account_keys(account, key_set(record.kind, record.mode, 'active')), id)
    ends_add(here.ZADD, K.account_keys(account, key_set(record.kind, record.mode, 'revoked')), 0, id)
    ends_add(here.HSET, K.key_endings(account), id, class .. ' ' .. entry)
    if not ends then
        ends_write(here)
    end
end

-- Writes that a key is revoked whose time has come. From then on that depends on no clock.
local function key_end_due(record, events_kept, ends)
    record.is_due = nil
    redis.call('ZREM', K.key_ends(), record.id)
    key_end(record, {'', '', '', events_kept}, {reason = 'scheduled'}, ends, record.revoked)
end

-- Marks a key as revoked for ever, unless it is, and writes the event. No script clears `revoked`. The key must have
-- been published before. source: as for audit(). data: of the event, or nil. since: nil: now. ends: as for key_end().
-- Returns whether it was revoked before.
local function key_mark(record, source, data, since, ends)
    if record.is_due then
        key_end_due(record, source[4], ends)
    end
    if record.revoked then
        return true
    end
    if record.ends then
        record.ends = nil
        redis.call('ZREM', K.key_ends(), record.id)
    end
    record.revoked = since or revoked_now(record)
    key_end(record, source, data or source[1] == 'holder' and {reason = 'holder'} or nil, ends)
    return false
end

-- Revokes keys. Publishes all of them every time, because a node may have missed an earlier message. data: of the
-- events, or nil.
local function keys_revoke(records, source, member, barrier, registry, data)
    local ends = ends_begin()
    keys_publish(records, member, barrier, registry)
    for _, record in ipairs(records) do
        key_mark(record, source, data, nil, ends)
    end
    ends_write(ends)
end

-- Writes when a key will be revoked (nil: never). The key must have been published. now: the first that the time can be.
-- data: of the event, which is written although nothing changes; or nil. record.replaced: a replacement sets it.
local function key_end_at(record, ends, source, now, data)
    if ends == record.ends and not data then
        return
    end
    local line, said = key_end_line(record), key_end_say(record)
    line.said = record.said
    key_end_line_put(record, line)
    record.ends = ends
    redis.call('SET', K.key(record.digest), key_pack(record))
    invalidation_note('key', record.digest, 'id', record.id, 'account', record.account,
                      record.replaced and 'replaced_at' or 'at', ends or '', 'said', said)
    if ends then
        key_end_keep(record, now)
    else
        redis.call('ZREM', K.key_ends(), record.id)
    end
    data = data or {}
    data.revoke_at = ends and rfc3339(tonumber(ends))
    audit(record.account, record.kind .. (ends and '.revocation_scheduled' or '.revocation_withdrawn'), record.id, source,
          {class = audit_class(record, source[1]), data = data})
end

-- Whether a view shows the record. account: '' for any; kind: '' for any; test_only: '1' or '0'.
local function key_visible(record, account, kind, test_only)
    return (account == '' or record.account == account) and (kind == '' or record.kind == kind)
        and (test_only ~= '1' or record.mode == 'test')
end

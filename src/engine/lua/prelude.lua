-- Shared by all scripts: embed.c puts in front of each only the definitions that it needs. Every statement at the
-- margin must be a definition, and may use only earlier ones.
-- Every script is called as EVALSHA sha 1 key prefix argument... The key names the expected store (epilogue.lua), and
-- like '<prefix>no_store' it never exists. The names of the real keys are built here from the prefix in ARGV[1] and not
-- passed as KEYS. In Redis Cluster all of them lie in the slot of that one, by the braces in the prefix. While the slot
-- is being moved, a primary refuses scripts as a whole, because that one key is not there.
-- Redis refuses each command of a script that needs memory if there is none, but only until the script has written
-- something; what it has published until then stays. So one that publishes and then writes begins with "#!lua": Redis
-- then refuses it as a whole.
-- A script whose first line is "#!lua flags=allow-oom" also runs when Redis has reached maxmemory. These are the
-- scripts that end something, that nodes need to go on, and that people need to sign in and end something. Each may
-- grow Redis only by a bounded amount that other tenants cannot use up.
-- A last key '<prefix>log:<chain>' says that the caller writes an audit log, whose chain has that name.
-- A script returns an array that begins with 'ok', 'not_found', 'conflict', 'refused' or 'full', or as in
-- actor_refused() or limit_refused(). It checks first and writes last, because Redis does not undo writes before an
-- error. {'again'}: it did a part of something that would block Redis for too long, and wrote no event; the node calls
-- it again.

local prefix = ARGV[1]

-- To whoever listens at the primary of this partition (src/lease/membership.c). A partition of several has its number
-- in braces, and its channels belong to its slot: prefix_has_tag() decides likewise.
local PUBLISH = prefix:find('{%d+}:$') and 'SPUBLISH' or 'PUBLISH'

local K = {}

function K.schema() return prefix .. 'schema' end
function K.store() return prefix .. 'store' end
function K.store_audit() return prefix .. 'audit' end
function K.invalidations() return prefix .. 'inv' end
function K.invalidation_log() return prefix .. 'inv_log' end
function K.master_keys() return prefix .. 'master_keys' end
function K.unsealed() return prefix .. 'unsealed' end
function K.nodes() return prefix .. 'nodes' end
function K.node(session) return prefix .. 'node:' .. session end
function K.reports() return prefix .. 'reports' end
function K.report(node) return prefix .. 'report:' .. node end
function K.canary() return prefix .. 'canary' end
function K.canary_nodes() return prefix .. 'canary_nodes' end
function K.canary_runner() return prefix .. 'canary_runner' end
function K.log_heads() return prefix .. 'log_heads' end
function K.log_taker() return prefix .. 'log_taker' end
function K.log_writer(chain) return prefix .. 'log_writer:' .. chain end
function K.log_dropped() return prefix .. 'log_dropped' end
function K.unlogged(class) return prefix .. 'unlogged:' .. class end
function K.lease_max() return prefix .. 'lease_max' end
function K.chains() return prefix .. 'chains' end
function K.chain_order() return prefix .. 'chain_order' end
function K.missing() return prefix .. 'missing' end
function K.tellers() return prefix .. 'tellers' end
function K.told() return prefix .. 'told' end
function K.key(digest) return prefix .. 'key:' .. digest end
function K.dead(name) return prefix .. 'dead:' .. name end
function K.key_id(id) return prefix .. 'id:' .. id end
function K.key_ends() return prefix .. 'key_ends' end
function K.burials() return prefix .. 'burials' end
function K.burials_due() return prefix .. 'burials_due' end
function K.accounts() return prefix .. 'accounts' end
function K.account(account) return prefix .. 'acct:' .. account end
function K.suspended() return prefix .. 'suspended' end
function K.account_keys(account, set) return prefix .. 'acct:' .. account .. ':keys:' .. set end
function K.keys_made(account, class) return prefix .. 'acct:' .. account .. ':keys_made:' .. class end
function K.account_users(account) return prefix .. 'acct:' .. account .. ':users' end
function K.account_people(account) return prefix .. 'acct:' .. account .. ':people' end
function K.account_people_place(account) return prefix .. 'acct:' .. account .. ':people_place' end
function K.account_owners(account) return prefix .. 'acct:' .. account .. ':owners' end
function K.account_gone(account) return prefix .. 'acct:' .. account .. ':gone' end
function K.account_gone_since(account) return prefix .. 'acct:' .. account .. ':gone_since' end
function K.account_gone_people(account) return prefix .. 'acct:' .. account .. ':gone_people' end
function K.account_leaving(account, user) return prefix .. 'acct:' .. account .. ':leaving:' .. user end
function K.account_ended_keys(account, user) return prefix .. 'acct:' .. account .. ':ended_keys:' .. user end
function K.account_invitations(account) return prefix .. 'acct:' .. account .. ':invitations' end
function K.account_invited(account) return prefix .. 'acct:' .. account .. ':invited' end
function K.key_uses(account) return prefix .. 'acct:' .. account .. ':key_uses' end
function K.key_endings(account) return prefix .. 'acct:' .. account .. ':key_endings' end
function K.audit(account, class)
    return prefix .. 'acct:' .. account .. ':audit' .. (class == 'people' and '' or ':' .. class)
end
function K.usage(account) return prefix .. 'acct:' .. account .. ':usage' end
function K.usage_of_day(account, date) return prefix .. 'acct:' .. account .. ':usage:' .. date end
function K.usage_keys(account) return prefix .. 'acct:' .. account .. ':usage_keys' end
function K.refused(account) return prefix .. 'acct:' .. account .. ':refused' end
function K.refused_of_day(account, date) return prefix .. 'acct:' .. account .. ':refused:' .. date end
function K.key_refused(account) return prefix .. 'acct:' .. account .. ':key_refused' end
function K.refused_told(key) return prefix .. 'refused_told:' .. key end
function K.used_after(key) return prefix .. 'used_after:' .. key end
function K.usage_sequence(sender) return prefix .. 'usage:seq:' .. sender end
function K.user(user) return prefix .. 'user:' .. user end
function K.user_sessions(user) return prefix .. 'user:' .. user .. ':sessions' end
function K.user_browsers(user) return prefix .. 'user:' .. user .. ':browsers' end
function K.user_new_browsers(user) return prefix .. 'user:' .. user .. ':new_browsers' end
function K.user_new_totp(user) return prefix .. 'user:' .. user .. ':new_totp' end
function K.user_recovery_codes(user) return prefix .. 'user:' .. user .. ':recovery_codes' end
function K.recovery(ticket) return prefix .. 'recovery:' .. ticket end
function K.user_ended_keys(user) return prefix .. 'user:' .. user .. ':ended_keys' end
function K.link(digest) return prefix .. 'link:' .. digest end
function K.email(email) return prefix .. 'email:' .. email end
function K.void(user) return prefix .. 'void:' .. user end
function K.session(digest) return prefix .. 'session:' .. digest end
function K.throttle(tag) return prefix .. 'throttle:' .. tag end
function K.changes(by) return prefix .. 'changes:' .. by end
function K.conflicts(account) return prefix .. 'acct:' .. account .. ':conflicts' end
function K.under_way(tag) return prefix .. 'throttle:' .. tag .. ':under_way' end
function K.strangers() return prefix .. 'strangers' end
function K.strangers_counts() return prefix .. 'strangers:counts' end
function K.device(digest) return prefix .. 'device:' .. digest end
function K.user_code(digest) return prefix .. 'user_code:' .. digest end
function K.enrolments() return prefix .. 'enrolments' end
function K.enrolment_networks() return prefix .. 'enrolment_networks' end
function K.addresses() return prefix .. 'addresses' end
function K.address_networks() return prefix .. 'address_networks' end
function K.throttles() return prefix .. 'throttles' end
function K.throttle_networks() return prefix .. 'throttle_networks' end
function K.account_device(account, digest) return prefix .. 'acct:' .. account .. ':device:' .. digest end

local function now_ms()
    local time = redis.call('TIME')
    return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- The store's time, by which revocations that were scheduled take effect (src/lease/README.md, Scheduled revocations). It
-- is Redis' clock, unless a heartbeat has proved that wrong (keep_time() in node_heartbeat.lua). The hash `store` keeps:
-- `time`: it was surely reached, and is kept while a revocation is scheduled; `ahead`: is added to Redis' clock for the
-- first that the time can be, and is below 0 if the clock is ahead; `unsure`: how much later it can be; `settlement`: a new
-- one says that what members were told before no longer counts.
-- Returns the first and the last that the time can be by Redis' clock, that clock, `time`, and `settlement`.
local function store_times()
    local kept = redis.call('HMGET', K.store(), 'time', 'ahead', 'unsure', 'settlement')
    local clock = now_ms()
    local first = clock + tonumber(kept[2] or '0')
    return first, first + tonumber(kept[3] or '0'), clock, tonumber(kept[1] or '0'), kept[4] or '-'
end

-- The first that the time can be: what was scheduled for it has surely ended.
local function store_ms()
    local first, _, _, seen = store_times()
    return math.max(first, seen)
end

-- The same, for what depends on it and stays: Redis' clock may have been set since the caller was told the time, or the
-- call was long on its way. known: '<least> <most> <settlement>', what the time was at least and at most when the caller
-- sent this, by what it knew, in ms; or '0': it knows nothing.
-- Returns the first that the time can be; and the last, unless that is later than when the caller sent this.
local function store_ms_within(known)
    local by_clock, _, _, seen, settlement = store_times()
    local least, most, told = (known or '0'):match('^(%d+) (%d+) (%S+)$')
    local first = math.max(by_clock, seen)
    if told ~= settlement then
        return first, first
    end
    least, most = tonumber(least), tonumber(most)
    first = first > most and least or math.max(first, least)
    return first, by_clock == first and first or most
end

-- By how many ms it is ahead of Redis' clock; below 0: behind.
local function store_time_ahead(first, last, clock)
    return first > clock and first - clock or math.min(last - clock, 0)
end

-- As in responses of the API (RFC 3339). The day becomes a date of the years that begin in March.
local function rfc3339(ms)
    local floor = math.floor
    local days, second = floor(ms / 86400000) + 719468, floor(ms / 1000) % 86400
    local era, day = floor(days / 146097), days % 146097
    local year = floor((day - floor(day / 1460) + floor(day / 36524) - floor(day / 146096)) / 365)
    day = day - (365 * year + floor(year / 4) - floor(year / 100))
    local month = floor((5 * day + 2) / 153)
    day = day - floor((153 * month + 2) / 5) + 1
    month = month < 10 and month + 3 or month - 9
    return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year + 400 * era + (month <= 2 and 1 or 0), month, day,
                         floor(second / 3600), floor(second / 60) % 60, second % 60, ms % 1000)
end

local function exists(name)
    return redis.call('EXISTS', name) == 1
end

-- On one Redis, the names of a store with one partition have no tag, and those of a store with several have. Neither
-- would see the other. prefix_beside: what the names of the other kind begin with, in its first partition; '' in a
-- cluster, where all names have a tag. Returns the number of its partitions; nil: there is no such store.
local function store_beside(prefix_beside)
    if (prefix_beside or '') == '' then
        return nil
    end
    local there = redis.call('HMGET', prefix_beside .. 'store', 'id', 'partitions')
    return (there[1] or exists(prefix_beside .. 'accounts')) and tonumber(there[2] or '1') or nil
end

-- An account's trail has a stream for each class of events, each with its own bound. So no number of live keys, test
-- keys or strangers can push out the events of another class. An event's id contains the number of its class, so these
-- numbers never change.
local AUDIT_CLASSES = {[0] = 'people', 'live', 'test', 'refused'}

-- The events that this call has written, for callers that write an audit log (epilogue.lua).
local events = {}
local log_chain = KEYS[#KEYS] and KEYS[#KEYS]:sub(#prefix + 1):match('^log:(%x+)$')

-- Where nodes write audit logs, a copy of each event waits in Redis until it is in a log: trails are cut at their bound,
-- but what no log has is not lost with them. Each class has its own bound, so that a flood displaces only its own kind.
local UNLOGGED_MAX = 100000

-- Whether a node writes an audit log. nil: not looked at yet.
local has_logs

-- Returns the name of the copy in the stream of its class; '' if no node writes a log.
local function keep_for_log(account, class, entry, fields)
    if has_logs == nil then
        has_logs = log_chain or exists(K.log_heads())
    end
    if not has_logs then
        return ''
    end
    local stream = K.unlogged(class)
    local copy = redis.call('XADD', stream, '*', 'account', account, 'class', class, 'entry', entry,
                            'by', log_chain or '', unpack(fields))
    if redis.call('XLEN', stream) > UNLOGGED_MAX then
        redis.call('INCRBY', K.log_dropped(), redis.call('XTRIM', stream, 'MAXLEN', UNLOGGED_MAX))
    end
    return copy
end

-- The name of an entry for something that took effect at that time, so that the trail is in the order of what happened:
-- the earliest one from then on that the stream still allows, because names only grow, and a follower has read what
-- stands there. nil: it happens now.
local function entry_at(stream, at)
    local last = at and redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
    at = at and math.min(tonumber(at), now_ms())
    return at and string.format('%.0f-*', last and math.max(at, tonumber(last[1]:match('^%d+'))) or at)
end

-- Appends an event to a stream, and to what waits for a log. account: '' for none. at: as for entry_at(). Returns its
-- entry.
local function audit_in(stream, kept, account, class, fields, at)
    local entry = at and redis.pcall('XADD', stream, 'MAXLEN', '~', kept, entry_at(stream, at), unpack(fields))
    if type(entry) ~= 'string' then -- it happens now, or a later entry was there and has been deleted
        entry = redis.call('XADD', stream, 'MAXLEN', '~', kept, '*', unpack(fields))
    end
    events[#events + 1] = {account, class, entry, fields, keep_for_log(account, class, entry, fields)}
    return entry
end

-- Appends one event to the account's trail. source: {actor, ip, request id, events to keep}. more, if given: {class =
-- of AUDIT_CLASSES, else 'people'; count = how many requests the event covers; data = {name = value}: what else is to
-- be told, in short texts, never a secret; at = when it took effect, in ms, if not now}. Returns the event's entry.
local function audit(account, event, target, source, more)
    more = more or {}
    local class, names = more.class or 'people', {}
    local fields = {'type', event, 'actor', source[1], 'target', target, 'ip', source[2], 'request_id', source[3]}
    if more.count then
        fields[#fields + 1], fields[#fields + 2] = 'count', more.count
    end
    for name in pairs(more.data or {}) do
        names[#names + 1] = name
    end
    table.sort(names)
    for _, name in ipairs(names) do
        fields[#fields + 1], fields[#fields + 2] = 'data:' .. name, more.data[name]
    end
    return audit_in(K.audit(account, class), source[4], account, class, fields, more.at)
end

-- The class of an event by this actor on this key. Whoever holds a key's secret can revoke it without being signed in
-- ('holder'); that event is among those of keys: whoever has a live key that manages keys can create and revoke others
-- by their secrets, and must not push out what people did. Strangers cannot push it out, because each key is revoked
-- once and an unknown secret writes no event; neither can test keys, nor refusals.
local function audit_class(key, actor)
    if key.mode == 'test' then
        return 'test'
    end
    return (actor == 'operator' or actor:sub(1, 4) == 'usr_') and 'people' or 'live'
end

-- The four arguments from ARGV[first] on, as audit() takes them. actor, if not nil, replaces the given one.
local function source_from(first, actor)
    return {actor or ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3]}
end

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

-- Changes are counted in windows of one minute that start with the first change. Each principal has a limit. But
-- whoever creates keys with keys could multiply that limit, so all principals of a kind in an account share another
-- one, ten times as high. People, live keys and test keys are separate kinds: none can block the others.
local CHANGES_WINDOW_MS = 60000
local CHANGES_OF_KIND = 10

local function changes_by(actor, account, mode)
    local kind = actor:sub(1, 4) == 'key_' and mode or 'people'
    return {{K.changes(actor), 1}, {K.changes(account .. ':' .. kind), CHANGES_OF_KIND}}
end

-- Whether a change exceeds a limit. mode: of the changed key. most: changes per minute (0: no limit). Returns nil if it
-- does not; else the script's reply: 'limited', seconds to wait.
local function limit_refused(actor, account, mode, most)
    for _, by in ipairs(changes_by(actor, account, mode)) do
        if most > 0 and tonumber(redis.call('GET', by[1]) or '0') >= most * by[2] then
            return {'limited', math.max(1, math.ceil(redis.call('PTTL', by[1]) / 1000))}
        end
    end
    return nil
end

-- Counts a completed change, or as many as count says.
local function limit_count(actor, account, mode, most, count)
    for _, by in ipairs(most > 0 and changes_by(actor, account, mode) or {}) do
        if redis.call('INCRBY', by[1], count or 1) == (count or 1) then
            redis.call('PEXPIRE', by[1], CHANGES_WINDOW_MS)
        end
    end
end

-- Whoever invites an email is told whether a user has it, in any account. So an account is told that it is taken this
-- often in a day, and is then refused all invitations: were only those refused, the refusal would be the answer.
local CONFLICTS_MAX = 20
local CONFLICTS_WINDOW_MS = 86400000

-- Returns nil or 'limited', seconds to wait.
local function conflicts_refused(account)
    if tonumber(redis.call('GET', K.conflicts(account)) or '0') < CONFLICTS_MAX then
        return nil
    end
    return {'limited', math.max(1, math.ceil(redis.call('PTTL', K.conflicts(account)) / 1000))}
end

local function conflict_count(account)
    if redis.call('INCR', K.conflicts(account)) == 1 then
        redis.call('PEXPIRE', K.conflicts(account), CONFLICTS_WINDOW_MS)
    end
end

-- For so long after an account was closed, its keys have their receipts.
local CLOSED_KEPT_MS = 24 * 60 * 60 * 1000

-- 'active', 'suspended', 'closing' (suspended, and on its way to closed) or 'closed'.
local function account_status(account)
    local a = redis.call('HMGET', K.account(account), 'suspended', 'closing', 'closed')
    return a[3] and 'closed' or a[2] and 'closing' or a[1] and 'suspended' or 'active'
end

-- What a node's caller says in KEYS[1] (epilogue.lua): the store that it expects; its name as a maker of changes; how
-- many of its changes that end something were answered; and whether this one 'ends' something or is an 'other' change.
local CALLER_PATTERN = '^store:(%x+):?(%x*):?(%d*):?(%l*)$'
local STORE_ID, MAKER, ENDS_ANSWERED, CHANGE = (KEYS[1] or ''):sub(#prefix + 1):match(CALLER_PATTERN)

-- The changes of each node process are a chain. For each maker the hash `chains` holds '<ends> <all> <low>': how many of
-- its changes that end something this store has or misses, how many changes in all, and the first of its numbers that
-- was ever missing here ('-': none; 'f': none, and it is folded: chains_fold.lua). `chain_order` has the makers by the count of changes at their last one.
local function chain_read(maker)
    local ends, all, low = (redis.call('HGET', K.chains(), maker) or ''):match('^(%d+) (%d+) (%S+)$')
    return tonumber(ends or '0'), tonumber(all or '0'), low ~= 'f' and low or '-'
end

local function chain_write(maker, ends, all, low)
    redis.call('HSET', K.chains(), maker, string.format('%.0f %.0f %s', ends, all, low))
    redis.call('ZADD', K.chain_order(), redis.call('HINCRBY', K.store(), 'changes', 1), maker)
end

-- The number that the present change gets in its chain, if it ends something. nil: nobody numbers it.
local number_given

local function ending_number()
    if CHANGE == 'ends' and not number_given then
        number_given = chain_read(MAKER) + 1
    end
    return number_given
end

-- Keeps the names of changes that were told completely, for twice as long as nodes remember changes. This is a write, so
-- the caller's WAIT covers what other nodes have told.
local TOLD_KEPT_MS = 1200000

local function told_keep()
    redis.call('PEXPIRE', K.told(), TOLD_KEPT_MS)
end

-- What nodes are told is kept in a stream too, for whoever was not there: an entry for each key that is revoked, and for
-- each account that is suspended or resumed. It ends with the change's place in its chain.
local INVALIDATIONS_KEPT = 100000

local function invalidation_note(...)
    local fields, number = {...}, ending_number()
    if number then
        fields[#fields + 1], fields[#fields + 2] = 'chain', MAKER
        fields[#fields + 1], fields[#fields + 2] = 'number', number
    end
    redis.call('XADD', K.invalidation_log(), 'MAXLEN', '~', INVALIDATIONS_KEPT, '*', unpack(fields))
end

-- What a node reads from a message is told by the last number of its entry in the registry: 1, or none: one key;
-- 2: a list of keys; 3: also what became of them.
local READS_LISTS = 2
local READS_ENDINGS = 3

-- What all members of the registry read. registry: as HGETALL returns it.
local function registry_reads(registry)
    local least = READS_ENDINGS
    for i = 2, #registry, 2 do
        least = math.min(least, tonumber(registry[i]:match('^%S+ %d+ (%d+)$') or '1'))
    end
    return least
end

-- The place in its chain of what is published, as a message ends with it: ' <maker> <number>'; ' - 0': it has none.
local function change_name()
    local number = ending_number()
    return number and string.format(' %s %d', MAKER, number) or ' - 0'
end

-- Nodes keep the suspended accounts in memory (src/lease/README.md). The hash `suspended` holds for each the time in
-- ms, and the version, which counts the changes; the same number is in the store's hash, where nodes compare it before
-- each batch of reads. since: nil resumes. member: to acknowledge to ('-' for none). barrier: its name.
-- The script needs a first line "#!lua": a version that was published, but not written, would hide the next change.
local function suspended_put(account, since, member, barrier)
    local state = since and 'suspended' or 'resumed'
    local version = tonumber(redis.call('HGET', K.store(), 'suspensions') or '0') + 1
    local reads_endings = registry_reads(redis.call('HGETALL', K.nodes())) >= READS_ENDINGS
    -- Before any write, because it fails if Redis' user may not publish.
    redis.call(PUBLISH, K.invalidations(), '@' .. account .. ' ' .. member .. ' ' .. barrier .. ' ' .. state .. ' '
               .. version .. (reads_endings and change_name() or ''))
    invalidation_note('account', account, 'state', state)
    if since then
        redis.call('HSET', K.suspended(), account, since)
        redis.call('HSET', K.account(account), 'suspended', since)
    else
        redis.call('HDEL', K.suspended(), account)
        redis.call('HDEL', K.account(account), 'suspended')
    end
    redis.call('HSET', K.suspended(), 'version', version)
    redis.call('HSET', K.store(), 'suspensions', version)
end

-- Nodes of earlier versions know no suspended accounts, so the store must be closed to them.
local SUSPENSIONS_SCHEMA = 2

-- schema: as read before; nil: it is read here.
local function schema_knows_suspensions(schema)
    return tonumber(schema or redis.call('GET', K.schema()) or '0') >= SUSPENSIONS_SCHEMA
end

-- The last entry in the stream of invalidations; '0-0' if there is none.
local function invalidations_last()
    local last = redis.call('XREVRANGE', K.invalidation_log(), '+', '-', 'COUNT', 1)
    return last[1] and last[1][1] or '0-0'
end

-- Notes the event of a revocation, for its receipt (revocation_note.lua). id: of a key, or of the account itself.
local function ending_note(account, id, class, entry)
    redis.call('HSET', K.key_endings(account), id, class .. ' ' .. entry)
end

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

-- Whether the account is that of canary keys (src/core/canary.c), which is not stored: it has no lists and no trail.
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

-- What a user of each role may do, the lowest first (core/account.h). A record without a role is an owner's.
local ROLE_RANKS = {auditor = 1, responder = 2, developer = 3, owner = 4}

-- A user as all scripts return it: {id, account, email, created, account name, MAC ('' for none), role, disabled since
-- (0: active), password, totp}; the last two only with secrets. nil if the id is unknown.
local function user_record(user, with_secrets)
    local fields = redis.call('HMGET', K.user(user), 'account', 'email', 'created', 'password', 'totp', 'mac', 'role',
                              'disabled')
    if not fields[1] then
        return nil
    end
    local record = {user, fields[1], fields[2], fields[3], redis.call('HGET', K.account(fields[1]), 'name'),
                    fields[6] or '', fields[7] or 'owner', tonumber(fields[8] or '0')}
    if with_secrets then
        record[9], record[10] = fields[4], fields[5]
    end
    return record
end

-- Writes role and state of a user, '' for an active one. Only what an active owner lacks is stored, see
-- user_seal_fill() in account_store.c.
local function user_put_state(user, role, disabled)
    redis.call('HDEL', K.user(user), 'role', 'disabled')
    if role ~= 'owner' or disabled ~= '' then
        redis.call('HSET', K.user(user), 'role', role)
    end
    if disabled ~= '' then
        redis.call('HSET', K.user(user), 'disabled', disabled)
    end
end

local INDEX_PORTION = 100 -- users: about a millisecond where none is in the processor's cache
local INDEX_PLACE_MS = 60000

-- An account's people by id, for pages, and the owners among them who are not disabled. Versions without roles keep
-- only the set of users, so whoever is missing is added, some in each call. nil: not all are there yet, so the script
-- returns {'again'}.
local function people_index(account)
    local people, users, place = K.account_people(account), K.account_users(account), K.account_people_place(account)
    local missing = redis.call('SCARD', users) - redis.call('ZCARD', people)
    if missing == 0 then
        return people
    end
    if missing < 0 then
        redis.call('UNLINK', people, K.account_owners(account), place)
    end
    local found = redis.call('SSCAN', users, redis.call('GET', place) or '0', 'COUNT', INDEX_PORTION)
    for _, user in ipairs(found[2]) do
        local u = redis.call('HMGET', K.user(user), 'role', 'disabled')
        redis.call('ZADD', people, 0, user)
        if (u[1] or 'owner') == 'owner' and not u[2] then
            redis.call('SADD', K.account_owners(account), user)
        end
    end
    redis.call('SET', place, found[1], 'PX', INDEX_PLACE_MS)
    return redis.call('SCARD', users) == redis.call('ZCARD', people) and people or nil
end

-- disabled: '' for an active user.
local function people_put(account, user, role, disabled)
    redis.call('SADD', K.account_users(account), user)
    redis.call('ZADD', K.account_people(account), 0, user)
    redis.call(role == 'owner' and disabled == '' and 'SADD' or 'SREM', K.account_owners(account), user)
end

-- Instead of a password hash: the user must first use a reset's link.
local NO_PASSWORD = '-'

-- nil if the account has another owner who can sign in: active, not locked, with a password. Otherwise the script's
-- reply: refused, or again.
local function last_owner_refused(account, user)
    if not people_index(account) then
        return {'again'}
    end
    local place = '0'
    repeat
        local found = redis.call('SSCAN', K.account_owners(account), place)
        place = found[1]
        for _, other in ipairs(found[2]) do
            local u = redis.call('HMGET', K.user(other), 'role', 'disabled', 'locked', 'password')
            if other ~= user and (u[1] or 'owner') == 'owner' and not u[2] and not u[3] and u[4]
                and u[4] ~= NO_PASSWORD then
                return nil
            end
        end
    until place == '0'
    return {'refused'}
end

-- A user as lists show it: {user record, locked (1 or 0), last sign-in (0: none), whether a link must be used first}.
local function person_reply(user)
    local u = redis.call('HMGET', K.user(user), 'locked', 'last_sign_in_at', 'password')
    return {user_record(user, false), u[1] and 1 or 0, tonumber(u[2] or '0'), u[3] == NO_PASSWORD and 1 or 0}
end

-- What is kept of a person who was removed: '<created> <role> <disabled since> <MAC>', beside the email.
-- Returns as person_reply(); nil: there was no such person, or an earlier version removed them.
local function person_gone(account, user)
    local kept = redis.call('HGET', K.account_gone_people(account), user)
    local created, role, disabled, mac = (kept or ''):match('^(%d+) (%l+) (%d+) (%S+)$')
    if not created then
        return nil
    end
    return {{user, account, redis.call('HGET', K.account_gone(account), user) or '', created,
             redis.call('HGET', K.account(account), 'name') or '', mac, role, tonumber(disabled)}, 0, 0, 0}
end

-- What an event about a person tells of that person's keys, added to data (nil: nothing else). Five arguments, if they are
-- given: which were to be revoked; the first ids of those that are, and of those that are kept, separated by blanks; how
-- many there are of each.
local function keys_told(first, data)
    data = data or {}
    if not ARGV[first] then
        return data
    end
    data.revoke_keys, data.keys_revoked_count, data.keys_kept_count = ARGV[first], ARGV[first + 3], ARGV[first + 4]
    data.keys_revoked = ARGV[first + 1] ~= '' and ARGV[first + 1] or nil
    data.keys_kept = ARGV[first + 2] ~= '' and ARGV[first + 2] or nil
    return data
end

-- A link: an invitation ('user' is empty), or a reset of a user. The set of invitations has '<id> <digest> <email>'.
local LINK_FIELDS = {'id', 'account', 'email', 'role', 'user', 'by', 'created', 'expires', 'mac', 'totp'}
-- How long a browser that has started may take, as long as its cookie lasts (src/api/session_cookie.c).
local LINK_START_MS = 30 * 60 * 1000

local function link_forget(link)
    redis.call('DEL', K.link(link.digest))
    if link.user ~= '' then
        if redis.call('HGET', K.user(link.user), 'link') == link.digest then
            redis.call('HDEL', K.user(link.user), 'link')
        end
        return
    end
    redis.call('ZREM', K.account_invitations(link.account), link.id .. ' ' .. link.digest .. ' ' .. link.email)
    if redis.call('HGET', K.account_invited(link.account), link.email) == link.digest then
        redis.call('HDEL', K.account_invited(link.account), link.email)
    end
end

-- Whether whoever made a link may still make links: an owner, whose links of before a given time have ended; a key
-- that is not revoked, and with which the person that it goes back to made the link after such a time; an operator.
local function link_maker_may(by, account, created)
    local kind = by:sub(1, 4)
    if kind == 'usr_' then
        local u = redis.call('HMGET', K.user(by), 'account', 'role', 'disabled', 'links_ended')
        return u[1] == account and (u[2] or 'owner') == 'owner' and not u[3] and created > tonumber(u[4] or '0')
    end
    local key = kind == 'key_' and key_record(by)
    if not key then
        return kind ~= 'key_'
    end
    local origin = key_origin(key)
    if origin == '' then
        return false
    end
    local gone = person_gone(account, origin)
    local ended = gone and gone[1][8] or tonumber(redis.call('HGET', K.user(origin), 'links_ended') or '0')
    return key.account == account and not key.revoked and created > ended
end

-- The link of a digest; nil if there is none that can be used. One that has ended in any way is removed.
local function link_read(digest, now)
    local values = redis.call('HMGET', K.link(digest), unpack(LINK_FIELDS))
    if not values[1] then
        return nil
    end
    local link = {digest = digest}
    for i, field in ipairs(LINK_FIELDS) do
        link[field] = values[i] or ''
    end
    local user = link.user ~= '' and redis.call('HMGET', K.user(link.user), 'account', 'link')
    local may = link.by == link.user or link_maker_may(link.by, link.account, tonumber(link.created))
    if now >= tonumber(link.expires) or not may
        or (user and (user[1] ~= link.account or user[2] ~= digest)) then
        link_forget(link)
        return nil
    end
    if now >= tonumber(redis.call('HGET', K.link(digest), 'started') or '0') + LINK_START_MS then
        link.totp = ''
    end
    return link
end

-- The link of a member of the set of invitations; nil if it has ended, then the member is removed.
local function invitation_read(account, member, now)
    local digest, email = member:match('^%S+ (%S+) (%S+)$')
    local link = digest and link_read(digest, now)
    if not link then
        redis.call('ZREM', K.account_invitations(account), member)
        if email and redis.call('HGET', K.account_invited(account), email) == digest then
            redis.call('HDEL', K.account_invited(account), email)
        end
    end
    return link
end

-- The set is in the order in which invitations were made, and they last equally long. So whoever makes one looks at the
-- oldest, and none that has ended counts for long.
local INVITATIONS_SWEPT = 16

local function invitations_sweep(account, now)
    for _, member in ipairs(redis.call('ZRANGE', K.account_invitations(account), 0, INVITATIONS_SWEPT - 1)) do
        invitation_read(account, member, now)
    end
end

-- A link as scripts return it: {digest, id, account, email, role, user, by, created, expires, MAC, sealed TOTP secret
-- ('' if no browser has started, or too long ago), name of the account}.
local function link_reply(link)
    local reply = {link.digest}
    for i, field in ipairs(LINK_FIELDS) do
        reply[i + 1] = link[field]
    end
    reply[#reply + 1] = redis.call('HGET', K.account(link.account), 'name') or ''
    return reply
end

-- The links that a user made, and the one for the user, end.
local function links_end(user, now)
    local digest = redis.call('HGET', K.user(user), 'link')
    if digest then
        redis.call('DEL', K.link(digest))
        redis.call('HDEL', K.user(user), 'link')
    end
    redis.call('HSET', K.user(user), 'links_ended', now)
end

-- The name of a key or the email of a user in the account; '' for anything else. id must not be a name chosen by a
-- stranger, because that could look like an id.
local function name_of(account, id)
    local kind = id:match('^(%l+)_%w+$')
    if kind == 'key' or kind == 'dev' then
        local key = key_record(id)
        return key and key.account == account and key.name or ''
    end
    local user = kind == 'usr' and user_record(id, false)
    if kind == 'usr' and not user then
        return redis.call('HGET', K.account_gone(account), id) or ''
    end
    return user and user[2] == account and user[3] or ''
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

-- A TOTP code is accepted once: its step must be later than the last one used. If it is not, returns that last step.
local function totp_step_taken(user, step)
    local last = tonumber(redis.call('HGET', K.user(user), 'totp_step'))
    return last and tonumber(step) <= last and last
end

-- Removes a session and its entry in the user's set.
local function session_forget(digest, user)
    redis.call('DEL', K.session(digest))
    redis.call('SREM', K.user_sessions(user), digest)
end

-- Returns a session {sid, user, account, created, expires, seen, step_up, ends, mac} with times as numbers, and whether
-- it is over by the current limits; nil if unknown. ends: its end by the limits in force when it was created, which its
-- MAC binds. mac: '' for none. limits: {idle, absolute, step-up window} in ms. A disabled user has no sessions. Writes
-- nothing.
local function session_look(digest, limits, now)
    local s = redis.call('HMGET', K.session(digest), 'sid', 'user', 'account', 'created', 'expires', 'seen',
                         'step_up', 'mac')
    if not s[1] then
        return nil
    end
    local session = {sid = s[1], user = s[2], account = s[3], created = tonumber(s[4]), ends = tonumber(s[5]),
                     seen = tonumber(s[6]), step_up = tonumber(s[7] or '0'), mac = s[8] or ''}
    session.expires = math.min(session.ends, session.created + limits[2])
    local user = redis.call('HMGET', K.user(session.user), 'account', 'disabled')
    return session, now >= session.expires or now - session.seen >= limits[1] or not user[1] or user[2] and true
end

-- A live session, as in session_look(). nil if it is unknown or over; one that is over is removed.
local function session_read(digest, limits, now)
    local session, over = session_look(digest, limits, now)
    if over then
        session_forget(digest, session.user)
        return nil
    end
    return session
end

-- Notes a use of the session. It then lives until the idle limit or its end, whichever comes first.
local function session_touch(digest, session, limits, now)
    redis.call('HSET', K.session(digest), 'seen', now)
    redis.call('PEXPIRE', K.session(digest), math.min(limits[1], session.expires - now))
end

-- A session's MAC binds times, and a node makes the MAC. So the node supplies the time, by its estimate of this clock.
-- An estimate too far off is an error.
local CLOCK_APART_MS = 10000

local function node_time(given, now)
    local ms = tonumber(given)
    if math.abs(ms - now) > CLOCK_APART_MS then
        error('the node\'s estimate of this clock is ' .. string.format('%.0f', ms - now) .. ' ms too high')
    end
    return ms
end

-- A session as all scripts return it: 'ok', sid, created, expires, end of the step-up (0: none), user record, what else
-- its MAC needs and whether the user must first change the password: {account, ends, step-up, MAC, 1 or 0}.
local function session_reply(session, limits, now)
    local step_up_expires = session.step_up > 0 and session.step_up + limits[3] or 0
    if step_up_expires <= now then
        step_up_expires = 0
    end
    return {'ok', session.sid, session.created, session.expires, math.min(step_up_expires, session.expires),
            user_record(session.user, false),
            {session.account, session.ends, session.step_up, session.mac,
             redis.call('HEXISTS', K.user(session.user), 'password_expired')}}
end

-- Gives a session a new digest and a fresh step-up. The old digest is unknown from now on.
local function session_rotate(old, new, session, step_up, mac)
    redis.call('RENAME', K.session(old), K.session(new))
    redis.call('SADD', K.user_sessions(session.user), new) -- first: an empty set is gone, and its time to live with it
    redis.call('SREM', K.user_sessions(session.user), old)
    redis.call('HSET', K.session(new), 'step_up', step_up, 'mac', mac)
    session.step_up, session.mac = step_up, mac
end

-- Ends all sessions of a user except the one with this digest ('' for none), or only the one with this sid ('' for
-- all). Writes session.ended for each. Returns how many.
local function sessions_end(user, account, except, sid, source)
    local ended = 0
    for _, digest in ipairs(redis.call('SMEMBERS', K.user_sessions(user))) do
        local found = redis.call('HGET', K.session(digest), 'sid')
        if not found then
            redis.call('SREM', K.user_sessions(user), digest) -- it has expired
        elseif digest ~= except and (sid == '' or found == sid) then
            session_forget(digest, user)
            audit(account, 'session.ended', user, source)
            ended = ended + 1
        end
    end
    return ended
end

local function limits_from(first)
    return {tonumber(ARGV[first]), tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2])}
end

-- Whether the actor of a change may still make it. A request's credential is checked when its head arrives. While its
-- body is under way the key may be revoked or the session may end. So each script that creates, approves, denies or
-- revokes checks again, in the step that takes effect.
-- credential: '' for commands and the node itself, 'key <digest>', or 'session <digest> <idle> <absolute> <step-up>
-- <least role>' with limits in ms; step-up is 0 if none is required.
-- Returns nil if it may. Otherwise the script's reply, and nothing was written: actor_unknown, actor_unproven,
-- actor_role, actor_revoked, or suspended, which tells that its account is suspended or closed.
local function actor_refused(credential, actor, account)
    if credential == '' then
        return nil
    end
    local digest, idle, absolute, step_up, least = credential:match('^session (%S+) (%d+) (%d+) (%d+) (%l+)$')
    if digest then
        local limits, now = {tonumber(idle), tonumber(absolute), tonumber(step_up)}, now_ms()
        local session, over = session_look(digest, limits, now)
        local user = redis.call('HMGET', K.user(actor), 'account', 'role')
        if not session or over or session.user ~= actor or user[1] ~= account then
            return {'actor_unknown'}
        end
        if ROLE_RANKS[user[2] or 'owner'] < ROLE_RANKS[least] then
            return {'actor_role'}
        end
        if limits[3] > 0 and now >= session.step_up + limits[3] then
            return {'actor_unproven'}
        end
        return account_status(account) ~= 'active' and {'suspended'} or nil
    end
    local packed = redis.call('GET', K.key(credential:match('^key (%S+)$')))
    local key = packed and key_unpack(packed)
    if not key or key.id ~= actor or key.account ~= account then
        return {'actor_unknown'}
    end
    if key.revoked then
        return {'actor_revoked'}
    end
    return account_status(account) ~= 'active' and {'suspended'} or nil
end

-- Anybody can write these, so what they take in Redis has a bound: beyond it, the network that has written the most loses
-- its oldest. list: '<network> <time> <words>' in the order of these; networks: how many each network has; names: of the
-- words, whose first name tells whether it still lasts. Counters of sign-ins, each of which costs a password hash, are
-- apart from those of requests that cost nothing: whoever could displace his own with these would guess without limit.
local STRANGERS = {
    enrolment = {list = K.enrolments, networks = K.enrolment_networks,
                 names = function(digest, code_digest) return K.device(digest), K.user_code(code_digest) end},
    address = {list = K.addresses, networks = K.address_networks, names = K.throttle},
    sign_in = {list = K.throttles, networks = K.throttle_networks, names = K.throttle},
}
-- So many are looked at with each new one, to leave out those that have expired; and so many are removed at most.
local STRANGERS_LOOKED_AT, STRANGERS_CUT = 8, 64

local function strangers_leave_out(of, member)
    local network = member:match('^%S+')
    redis.call('ZREM', of.list(), member)
    if tonumber(redis.call('ZINCRBY', of.networks(), -1, network)) <= 0 then
        redis.call('ZREM', of.networks(), network)
    end
end

local function strangers_names(of, member)
    return of.names(member:match('^%S+ %d+ (%S+) ?(%S*)$'))
end

local function strangers_cut(of, most)
    for _ = 1, STRANGERS_CUT do
        if redis.call('ZCARD', of.list()) <= most then
            return
        end
        local heaviest = redis.call('ZREVRANGE', of.networks(), 0, 0)[1] or ''
        local oldest = redis.call('ZRANGEBYLEX', of.list(), '[' .. heaviest .. ' ', '(' .. heaviest .. '!', 'LIMIT', 0, 1)[1]
        if not oldest then -- somebody has removed one of the two
            redis.call('DEL', of.list(), of.networks())
            return
        end
        redis.call('DEL', strangers_names(of, oldest))
        strangers_leave_out(of, oldest)
    end
end

-- kind: of STRANGERS. most: that are kept here. kept: how long they last at most, in ms. words: of one that was made just
-- now; nil: none was, but one goes on.
local function strangers_keep(kind, network, most, kept, words)
    local of = STRANGERS[kind]
    if words then
        redis.call('ZADD', of.list(), 0, string.format('%s %015.0f %s', network, now_ms(), words))
        redis.call('ZINCRBY', of.networks(), 1, network)
        for _, member in ipairs(redis.call('ZRANDMEMBER', of.list(), STRANGERS_LOOKED_AT)) do
            if not exists((strangers_names(of, member))) then
                strangers_leave_out(of, member)
            end
        end
    end
    strangers_cut(of, most)
    redis.call('PEXPIRE', of.list(), kept)
    redis.call('PEXPIRE', of.networks(), kept)
end

-- A throttle counts failures. From the free-th failure within the window, each one starts a wait, and the waits double.
-- A rule that closes waits for the rest of its window instead.
local THROTTLE_WINDOW_MS = 15 * 60 * 1000
local THROTTLE_FIRST_WAIT_MS = 30 * 1000

-- The counters of an attempt to sign in or step up. free: failures before the first wait. under_way: how many may be
-- judged at once; far more than fail on an ordinary morning, yet a bound on the work that guesses cause. forgiven: a
-- right attempt clears the counter. A network's counters stay, because otherwise anyone with a user here could guess at
-- others for ever. An email's global counter stays too, because the owner signs in while strangers guess.
-- Counters of a browser, a session or a user lie with the account. Each of the others lies in the partition of its tag,
-- so the throttle_... scripts act on the counters of one partition.
local THROTTLES = {
    pair = {free = 5, under_way = 10, forgiven = true},     -- one email from one network
    network = {free = 20, under_way = 100},                 -- IPv4 /24, IPv6 /56
    wide = {free = 60, under_way = 300},                    -- IPv6 /48
    email = {free = 30, under_way = 100, window = 60 * 60 * 1000, closes = true}, -- one email from all networks
    browser = {free = 5, under_way = 10, forgiven = true},  -- a browser that its user signed in from before
    session = {free = 5, under_way = 10, forgiven = true},  -- step-ups of one session
    user = {free = 20, under_way = 40},                     -- step-ups of one user
    address = {free = 30},                                  -- wrong codes of links, requests of devices; never reserved
}
-- Which counters are written for strangers: not those of an account.
local THROTTLE_STRANGERS = {address = 'address', pair = 'sign_in', network = 'sign_in', wide = 'sign_in', email = 'sign_in'}
local THROTTLE_KEPT_MS = 75 * 60 * 1000 -- the longest window, and the longest wait
-- Longer than a password ever queues for hashing. A dead node's reservations last this long.
local UNDER_WAY_MS = 60 * 1000

-- forgiven: a time or nil; failures in a window that began before it no longer count. It comes from the clock of the
-- user's partition, which may be ahead of this one. A time that is not reached here forgives nothing yet, because
-- every new window would begin before it.
local function throttle_read(tag, now, forgiven)
    local t = redis.call('HMGET', K.throttle(tag), 'n', 'first', 'until')
    local first = tonumber(t[2] or '0')
    if forgiven and forgiven <= now and first <= forgiven then
        return {n = 0, first = 0, wait_until = 0}
    end
    return {n = tonumber(t[1] or '0'), first = first, wait_until = tonumber(t[3] or '0')}
end

-- Milliseconds to wait; 0: the attempt may go ahead.
local function throttle_wait(tag, now, forgiven)
    return math.max(0, throttle_read(tag, now, forgiven).wait_until - now)
end

-- Counts one failure; call it only if throttle_wait() is 0. Returns the new count.
local function throttle_count(tag, free, now, rule, forgiven)
    local window = rule and rule.window or THROTTLE_WINDOW_MS
    local t = throttle_read(tag, now, forgiven)
    if t.n == 0 or now - t.first >= window then
        t = {n = 0, first = now, wait_until = 0}
    end
    t.n = t.n + 1
    if t.n >= free and rule and rule.closes then
        t.wait_until = t.first + window
    elseif t.n >= free then
        t.wait_until = now + math.min(THROTTLE_FIRST_WAIT_MS * 2 ^ math.min(t.n - free, 20), THROTTLE_WINDOW_MS)
    end
    redis.call('HSET', K.throttle(tag), 'n', t.n, 'first', t.first, 'until', t.wait_until)
    redis.call('PEXPIRE', K.throttle(tag), math.max(1, math.max(t.first + window, t.wait_until) - now))
    return t.n
end

-- Attempts to sign in and to step up. Each is reserved before its password is hashed. A wrong one ends as a failure,
-- and a right one releases its place. An attempt that ends after a limit was reached is refused, wrong or right. So
-- right attempts in parallel block nobody, and guesses in parallel get no more verdicts than the limit.

-- list: '<rule>:<tag>,' for each counter.
local function attempt_counters(list)
    local counters = {}
    for name, tag in list:gmatch('(%l+):([^,]+)') do
        counters[#counters + 1] = {name = name, rule = THROTTLES[name], tag = tag}
    end
    return counters
end

-- Seconds to wait, at least 1; nil: no counter has reached its limit.
local function attempt_wait_s(counters, now, forgiven)
    local wait = 0
    for _, c in ipairs(counters) do
        wait = math.max(wait, throttle_wait(c.tag, now, forgiven))
    end
    return wait > 0 and math.ceil(wait / 1000) or nil
end

-- Returns seconds to wait, because a limit was reached or too many are under way; nil: the attempt is reserved.
local function attempt_reserve(counters, id, now, forgiven)
    local wait_s = attempt_wait_s(counters, now, forgiven)
    if wait_s then
        return wait_s
    end
    for _, c in ipairs(counters) do
        if redis.call('ZCOUNT', K.under_way(c.tag), now, '+inf') >= c.rule.under_way then
            return 1
        end
    end
    for _, c in ipairs(counters) do
        redis.call('ZREMRANGEBYSCORE', K.under_way(c.tag), '-inf', '(' .. now)
        redis.call('ZADD', K.under_way(c.tag), now + UNDER_WAY_MS, id)
        redis.call('PEXPIRE', K.under_way(c.tag), UNDER_WAY_MS)
    end
    return nil
end

local function attempt_give_back(counters, id)
    for _, c in ipairs(counters) do
        redis.call('ZREM', K.under_way(c.tag), id)
    end
end

-- Counts a wrong attempt, which ends. Returns seconds to wait if others reached a limit since it began: then it was not
-- counted. Otherwise nil, and whether it closed sign-in by this email to unknown browsers.
local function attempt_fail(counters, id, now, forgiven)
    local wait_s, closed = attempt_wait_s(counters, now, forgiven), false
    attempt_give_back(counters, id)
    if wait_s then
        return wait_s
    end
    for _, c in ipairs(counters) do
        local n = throttle_count(c.tag, c.rule.free, now, c.rule, forgiven)
        closed = closed or (c.rule.closes and n == c.rule.free)
    end
    return nil, closed
end

local function attempt_succeed(counters, id)
    attempt_give_back(counters, id)
    for _, c in ipairs(counters) do
        if c.rule.forgiven then
            redis.call('DEL', K.throttle(c.tag))
        end
    end
end

-- Whose email it is: user and account; nil: nobody's. A store of one partition may name the user alone, whose record
-- is here then.
local function email_owner(email)
    local owner = redis.call('GET', K.email(email)) or ''
    local user, account = owner:match('^(%S+) (%S+)$')
    if not user then
        user, account = owner, redis.call('HGET', K.user(owner), 'account')
    end
    if not account then
        return nil
    end
    return user, account
end

-- Who claims an email (src/records/people/email_claim.h), as the claim says. '': nobody.
local function email_claimant(email)
    return (redis.call('GET', K.email(email)) or ''):match('^%S*')
end

-- Whether a creation of this user was done before.
local function user_was_created(user, account, email)
    local u = redis.call('HMGET', K.user(user), 'account', 'email')
    return u[1] == account and u[2] == email
end

-- {forgiven, locked}: when an operator cleared the user's counters (0: never), and whether wrong codes with the right
-- password locked the user. user may be nil or false.
local function user_guard(user)
    local g = user and redis.call('HMGET', K.user(user), 'forgiven', 'locked') or {false, false}
    return {forgiven = tonumber(g[1] or '0'), locked = g[2] and true or false}
end

-- Checks a proof: password and code were right for a live session. No limit may have been reached since the attempt
-- began, and the code's step must be unused. Returns the session, with the counters of the attempt; otherwise nil and
-- the script's reply: 'not_found' (the session is over), 'suspended' (its account is), 'refused' and seconds to wait (0:
-- the user is locked), 'conflict' and the last step used.
local function proof_check(digest, step, counter_list, limits, now)
    local session = session_read(digest, limits, now)
    if not session then
        return nil, {'not_found'}
    end
    if account_status(session.account) ~= 'active' then
        return nil, {'suspended'}
    end
    local counters, guard = attempt_counters(counter_list), user_guard(session.user)
    local wait_s = attempt_wait_s(counters, now, guard.forgiven)
    if wait_s or guard.locked then
        return nil, {'refused', wait_s or 0}
    end
    local taken = totp_step_taken(session.user, step)
    if taken then
        return nil, {'conflict', taken}
    end
    session.counters = counters
    return session
end

-- Takes the step of a proof that was checked, and ends its attempt.
local function proof_take(session, step, attempt)
    redis.call('HSET', K.user(session.user), 'totp_step', step)
    redis.call('HDEL', K.user(session.user), 'wrong_codes')
    attempt_succeed(session.counters, attempt)
end

-- A new authenticator waits in user:<id>:new_totp until a code of it confirms it: {totp: the sealed secret; by: who may
-- confirm it, the sid of a session or the digest of a recovery's ticket; code: the digest of the recovery code, if any;
-- tries}. One at a time for each user: a later one replaces it.
local NEW_TOTP_MS = 10 * 60 * 1000

local function new_totp_forget(user)
    local by = redis.call('HGET', K.user_new_totp(user), 'by')
    if by then
        redis.call('DEL', K.user_new_totp(user), K.recovery(by))
    end
end

-- Removes what belongs to a user's factors and browsers.
local function factors_forget(user)
    new_totp_forget(user)
    redis.call('DEL', K.user_browsers(user), K.user_new_browsers(user), K.user_recovery_codes(user))
end

-- How long a call that revokes a person's keys, and was not answered, may be repeated and says so of each.
local ENDED_KEYS_MS = 24 * 60 * 60 * 1000

-- Removes a user with all links. The trail keeps the email, which the node releases next (email_release.lua).
local function user_erase(user, account, email)
    local u = user_record(user, false)
    links_end(user, now_ms())
    factors_forget(user)
    if u and u[6] ~= '' and u[8] > 0 then
        redis.call('HSET', K.account_gone_people(account), user,
                   string.format('%s %s %.0f %s', u[4], u[7], u[8], u[6]))
    end
    if exists(K.user_ended_keys(user)) then
        redis.call('RENAME', K.user_ended_keys(user), K.account_ended_keys(account, user))
        redis.call('PEXPIRE', K.account_ended_keys(account, user), ENDED_KEYS_MS)
    end
    redis.call('DEL', K.user(user))
    redis.call('SREM', K.account_users(account), user)
    redis.call('ZREM', K.account_people(account), user)
    redis.call('SREM', K.account_owners(account), user)
    redis.call('HSET', K.account_gone(account), user, email)
    redis.call('ZADD', K.account_gone_since(account), now_ms(), user)
end

-- code: nil for a session's.
local function new_totp_begin(user, totp, by, code)
    new_totp_forget(user)
    redis.call('HSET', K.user_new_totp(user), 'totp', totp, 'by', by, unpack(code and {'code', code} or {}))
    redis.call('PEXPIRE', K.user_new_totp(user), NEW_TOTP_MS)
end

-- The digest of the user's recovery code among these (one per master key, as known_digest() takes them); nil if none is.
local function recovery_code_find(user, digests)
    for digest in digests:gmatch('[^,]+') do
        if redis.call('SISMEMBER', K.user_recovery_codes(user), digest) == 1 then
            return digest
        end
    end
    return nil
end

-- What the user should know at a session's beginning and while it lasts: {the sign-in before it (0: none), its address,
-- failed sign-ins since then, when guesses closed sign-in to unknown browsers, when a recovery code was used (0: not
-- since this browser's last sign-in), {time, address, browser} of each new browser since then}. A session of an earlier
-- version knows nothing of what was before it.
local function notices(user, digest)
    local s = redis.call('HMGET', K.session(digest), 'sid', 'since', 'failures', 'last_at', 'last_ip', 'attacked')
    local u = redis.call('HMGET', K.user(user), 'failures', 'recovered')
    local since, recovered = tonumber(s[2]) or math.huge, tonumber(u[2] or '0')
    local found, browsers = redis.call('LRANGE', K.user_new_browsers(user), 0, -1), {}
    for _, line in ipairs(found) do
        local at, sid, ip, browser = line:match('^(%d+) (%S+) (%S*) (.*)$')
        if at and sid ~= s[1] and tonumber(at) > since then
            browsers[#browsers + 1] = {tonumber(at), ip, browser}
        end
    end
    return {tonumber(s[4] or '0'), s[5] or '', tonumber(u[1] or '0') - tonumber(s[3] or u[1] or '0'),
            tonumber(s[6] or '0'), recovered > since and recovered or 0, browsers}
end

-- Clears everything counted against the user. Counters are named by keyed tags, so they cannot be found; noting the
-- time makes them void.
local function user_forgive(user, now)
    redis.call('HSET', K.user(user), 'forgiven', now)
    redis.call('HDEL', K.user(user), 'wrong_codes', 'locked')
end

-- A secret has one digest per master key. Of digests ('<digest>,<digest>', the current key's first), returns the one
-- that exists, or the first if none does.
local function known_digest(digests, name)
    for digest in digests:gmatch('[^,]+') do
        if exists(name(digest)) then
            return digest
        end
    end
    return digests:match('[^,]+')
end

-- A device enrolment: pending, then approved or denied by a user, whose account is set then, and at last claimed. It is
-- in the partition of its user code. {client, name, scopes, ip, created, expires, interval, polled, status, account,
-- user, mac} with times as numbers; nil if unknown. The MAC comes from the node that began it, then from the node that
-- approved it. Nodes verify it ('': from a version without MACs).
local function device_read(digest)
    local d = redis.call('HMGET', K.device(digest), 'client', 'name', 'scopes', 'ip', 'created', 'expires', 'interval',
                         'polled', 'status', 'account', 'user', 'mac')
    if not d[1] then
        return nil
    end
    return {client = d[1], name = d[2], scopes = d[3], ip = d[4], created = tonumber(d[5]), expires = tonumber(d[6]),
            interval = tonumber(d[7]), polled = tonumber(d[8] or '0'), status = d[9], account = d[10] or nil,
            user = d[11] or nil, mac = d[12] or ''}
end

-- What an account has decided about an enrolment, in the account's partition: approved, which can become denied or
-- claimed; both are final. It alone decides whether a key is made. It outlives the enrolment, so that no step that
-- arrives late begins again what has ended.
local DECISION_KEPT_MS = 2 * 60 * 60 * 1000

-- {status, name, scopes, user, mac}; nil: nothing was decided.
local function decision_read(account, digest)
    local d = redis.call('HMGET', K.account_device(account, digest), 'status', 'name', 'scopes', 'user', 'mac')
    return d[1] and {status = d[1], name = d[2], scopes = d[3], user = d[4], mac = d[5]} or nil
end

-- fields: {field, value...} of an approval.
local function decision_write(account, digest, status, fields)
    redis.call('HSET', K.account_device(account, digest), 'status', status, unpack(fields or {}))
    redis.call('PEXPIRE', K.account_device(account, digest), DECISION_KEPT_MS)
end

-- The canary (src/auth/README.md#the-canary). A run has three phases: nodes use its key ('use'); its revocation was
-- answered, and nodes are asked ('ask'); 'over'. One node runs it, while K.canary_runner holds its name.
local CANARY_RUNNER_MS = 10000

-- When the next run is due: by the shorter interval, if nodes have different ones. `started` is missing until a node
-- has asked for the first time, and the first run is due one interval later. If Redis' clock was set back, it is due.
local function canary_due(canary, interval, now)
    local started = tonumber(canary.started) or now
    return started > now and now or started + math.min(interval, tonumber(canary.interval) or interval)
end

-- A hash as a table.
local function hash_read(name)
    local values, hash = redis.call('HGETALL', name), {}
    for i = 1, #values, 2 do
        hash[values[i]] = values[i + 1]
    end
    return hash
end

-- What became of a run's key at a node: {seen: when it was last told, run, state, effect: ms from the mark in Redis until
-- the node told that it refuses the key, '-': it has not}. state: 'used', 'refused' (before it was asked), 'asked' (and
-- refuses), 'violated' (accepted when it was asked). nil: no run has used a key there.
local function canary_node_read(packed)
    local seen, run, state, effect = (packed or ''):match('^(%d+) (%d+) (%l+) (%S+)$')
    return seen and {seen = tonumber(seen), run = tonumber(run), state = state, effect = effect} or nil
end

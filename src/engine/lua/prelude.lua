-- Shared by all scripts, with the files of prelude.list behind it: embed.c puts in front of each script only the
-- definitions that it needs. Every statement at the margin must be a definition, and may use only earlier ones.
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

-- Adds fields to a record: scripts read them as record[name], and reply it as {name, value, name, value...}. What has no
-- value is left out.
local function record_add(record, names, values)
    for i, name in ipairs(names) do
        if values[i] then
            record[#record + 1], record[#record + 2], record[name] = name, values[i], values[i]
        end
    end
    return record
end

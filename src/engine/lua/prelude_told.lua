-- Part of the prelude (prelude.lua): limits on changes, their chains, and the messages about them to nodes.

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

-- Notes the event of a revocation, for its receipt (effect_note.lua). id: of a key, or of the account itself.
local function ending_note(account, id, class, entry)
    redis.call('HSET', K.key_endings(account), id, class .. ' ' .. entry)
end

#!lua flags=allow-oom
-- Finds revoked keys that are to become tombstones (core/tombstone.h): those that have been revoked for long enough, and
-- those of an account that is closed. Each call looks at some keys of some accounts and goes on where the one before
-- stopped, at whatever node that was. A pass over all accounts looks at no key that was created later than what it
-- looks for was revoked, because ids are in the order of their creation. Nodes of 0.3 know no tombstones, so nothing is
-- found while one is registered. It also forgets emails that no trail names any longer.
-- ARGV: prefix, #kept_ms (how long a revoked key is kept), known (what the node knows of the store's time, as for
--   store_ms_within() in the prelude)
-- Returns: ok, whether there may be more at once (1 or 0), {digest, record}...

local KEYS_MAX, ACCOUNTS_MAX = 100, 20
local PASS_EVERY_MS = 60 * 60 * 1000
local GONE_AT_ONCE = 100
-- Longer than a link lasts: whose key made it is looked up there (link_maker_may() in the prelude).
local GONE_KEPT_MS = 4 * 24 * 60 * 60 * 1000
local SETS = {'ak-live', 'ak-test', 'dk'}
local KEYS_MANAGE = 32 -- the scope, as in core/scope.h

if registry_reads(redis.call('HGETALL', K.nodes())) < READS_ENDINGS then
    redis.call('HDEL', K.burials(), 'since')
    return {'ok', 0}
end
local now = store_ms_within(known)
redis.call('HSETNX', K.burials(), 'since', string.format('%.0f', now))
local makers_until = tonumber(redis.call('HGET', K.burials(), 'since'))
local reply, left = {'ok', 0}, KEYS_MAX

-- What an id of that time begins with, behind its prefix.
local function ulid_from(ms)
    local digits, text = '0123456789abcdefghjkmnpqrstvwxyz', ''
    for _ = 1, 10 do
        text, ms = digits:sub(ms % 32 + 1, ms % 32 + 1) .. text, math.floor(ms / 32)
    end
    return text
end

-- A key that was made at a node of 0.3 does not say whom it goes back to: the keys that made one another are followed
-- (key_origin() in the prelude). So what may have made one stays.
local function may_have_made(record)
    return math.floor(tonumber(record.scopes) / KEYS_MANAGE) % 2 == 1 and tonumber(record.created) < makers_until
end

-- Goes on in an account from a place in it. before: keys that were revoked by then are found; nil: all. Returns the place
-- where the next call goes on; nil: that was all.
local function walk(account, set, after, before)
    while set <= #SETS do
        local id_prefix = SETS[set] == 'dk' and 'dev_' or 'key_'
        local ids = redis.call('ZRANGEBYLEX', K.account_keys(account, SETS[set] .. ':revoked'),
                               after ~= '' and '(' .. after or '-', before and '(' .. id_prefix .. ulid_from(before + 1) or '+',
                               'LIMIT', 0, left)
        for _, record in ipairs(#ids > 0 and key_records(ids) or {}) do
            if record.revoked and not record.is_due
               and (not before or tonumber(record.revoked) <= before and not may_have_made(record)) then
                reply[#reply + 1] = {record.digest, key_pack(record)}
            end
        end
        left = left - #ids
        if left <= 0 then
            return account .. ' ' .. set .. ' ' .. ids[#ids]
        end
        set, after = set + 1, ''
    end
    if not before then
        -- What late batches of usage have left.
        redis.call('UNLINK', K.key_uses(account), K.key_refused(account), K.usage_keys(account))
    end
    return nil
end

-- In a pass.
local function walk_on(account, set, after)
    local closed = redis.call('HGET', K.account(account), 'closed')
    local is_due = closed and now - closed >= CLOSED_KEPT_MS
    return walk(account, set, after, not is_due and now - kept_ms or nil)
end

-- An email is kept for the trail, so it goes when the oldest event of each class is younger than the removal. Versions
-- that kept no time of a removal have kept the email alone.
local function gone_forget(account)
    local gone, since, upto = K.account_gone(account), K.account_gone_since(account), now - GONE_KEPT_MS
    if not exists(gone) then
        return
    end
    if redis.call('HLEN', gone) > redis.call('ZCARD', since) then
        for _, user in ipairs(redis.call('HRANDFIELD', gone, GONE_AT_ONCE)) do
            redis.call('ZADD', since, 'NX', string.format('%.0f', now), user)
        end
    end
    for number = 0, #AUDIT_CLASSES do
        local oldest = redis.call('XRANGE', K.audit(account, AUDIT_CLASSES[number]), '-', '+', 'COUNT', 1)[1]
        upto = oldest and math.min(upto, tonumber(oldest[1]:match('^%d+'))) or upto
    end
    local users = redis.call('ZRANGEBYSCORE', since, '-inf', '(' .. string.format('%.0f', upto), 'LIMIT', 0, GONE_AT_ONCE)
    if #users > 0 then
        redis.call('HDEL', gone, unpack(users))
        redis.call('HDEL', K.account_gone_people(account), unpack(users))
        redis.call('ZREM', since, unpack(users))
    end
end

local function place_read(place)
    local account, set, after = place:match('^(%S+) (%d) (%S*)$')
    return account, tonumber(set), after
end

-- The keys of an account that was closed, whenever they were revoked.
local due = redis.call('ZRANGEBYSCORE', K.burials_due(), '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
if due[1] then
    local account, set, after = place_read(due[1])
    redis.call('ZREM', K.burials_due(), due[1])
    local place = walk(account, set, after, nil)
    if place then
        redis.call('ZADD', K.burials_due(), due[2], place)
    end
    reply[2] = 1
    return reply
end

local place, began = unpack(redis.call('HMGET', K.burials(), 'place', 'began'))
if not place and began and tonumber(began) <= now and now - began < PASS_EVERY_MS then
    return reply
elseif not place then
    redis.call('HSET', K.burials(), 'began', string.format('%.0f', now))
end
local account = ''
if place then
    local set, after
    account, set, after = place_read(place)
    place = walk_on(account, set, after)
end
for _ = 1, ACCOUNTS_MAX do
    if place then
        break
    end
    account = redis.call('ZRANGEBYLEX', K.accounts(), account ~= '' and '(' .. account or '-', '+', 'LIMIT', 0, 1)[1]
    if not account then
        break
    end
    gone_forget(account)
    place = walk_on(account, 1, '')
end
if account then
    -- Behind the last set: with the next account.
    redis.call('HSET', K.burials(), 'place', place or account .. ' ' .. #SETS + 1 .. ' ')
else
    redis.call('HDEL', K.burials(), 'place')
end
reply[2] = #reply > 2 and 1 or 0
return reply

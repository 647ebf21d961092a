-- Usage of some days. For the named keys, also per day; if none is named, the totals of the most used keys.
-- Redis serves nobody else meanwhile, and named keys cost about 5 us per key and day. So a caller who wants many days of
-- many keys asks for a few days at a time (usage_store.c).
-- ARGV: prefix, account, #most (keys wanted; 0: named keys come without name and mode), #date_count, values... (the
--   dates, then the keys)
-- Returns: ok, {requests in test mode, in live mode, for each date; nil: none}, the same for refused requests, {key,
--   requests, name, mode, {requests for each date; empty if no key was named}, {refused requests by reason}}...; name
--   and mode are '' if the account has no such key

local dates = {unpack(ARGV, FIRST, FIRST + date_count - 1)}
local asked = {unpack(ARGV, FIRST + date_count)}

local fields = {}
for i, date in ipairs(dates) do
    fields[2 * i - 1], fields[2 * i] = date .. ':test', date .. ':live'
end

-- In the order of enum usage_reason.
local REASONS = {'revoked', 'insufficient_scope', 'mode_not_permitted', 'account_suspended'}

-- Refused requests of each key by reason, summed over these hashes. Most days have none, so they have no hash.
local function refused_of(ids, names)
    local counts, sums, by_key = {}, {}, {}
    for k, id in ipairs(ids) do
        for r, reason in ipairs(REASONS) do
            local i = (k - 1) * #REASONS + r
            counts[i], sums[i] = id .. ':' .. reason, 0
        end
    end
    for _, name in ipairs(names) do
        for i, count in ipairs(#ids > 0 and exists(name) and redis.call('HMGET', name, unpack(counts)) or {}) do
            sums[i] = sums[i] + (count or 0)
        end
    end
    for k = 1, #ids do
        by_key[k] = {}
        for r = 1, #REASONS do
            by_key[k][r] = string.format('%d', sums[(k - 1) * #REASONS + r])
        end
    end
    return by_key
end

local function row(id, requests, by_day, refused)
    local key = most > 0 and key_record(id)
    local is_ours = key and key.account == account
    return {id, requests, is_ours and key.name or '', is_ours and key.mode or '', by_day, refused}
end

-- {total, day, uses on that day} of each key; 0 and '' if never used.
local function uses_of(ids)
    local uses = {}
    for i, packed in ipairs(#ids > 0 and redis.call('HMGET', K.key_uses(account), unpack(ids)) or {}) do
        uses[i] = {0, '', 0}
        if packed then
            local _, total, day, on_day = use_unpack(packed)
            uses[i] = {total, day, on_day}
        end
    end
    return uses
end

local reply = {'ok', redis.call('HMGET', K.usage(account), unpack(fields)),
               redis.call('HMGET', K.refused(account), unpack(fields))}
if #asked > 0 then
    local days, refused_in, uses = {}, {}, uses_of(asked)
    for i, date in ipairs(dates) do
        local name = K.usage_of_day(account, date)
        refused_in[i] = K.refused_of_day(account, date)
        days[i] = exists(name) and redis.call('HMGET', name, unpack(asked)) or {}
    end
    local refused = refused_of(asked, refused_in)
    for k, id in ipairs(asked) do
        local by_day, sum, day, on_day = {}, 0, uses[k][2], uses[k][3]
        for i, date in ipairs(dates) do
            local requests = (days[i][k] or 0) + (date == day and on_day or 0)
            by_day[i] = string.format('%d', requests)
            sum = sum + requests
        end
        reply[k + 3] = row(id, string.format('%d', sum), by_day, refused[k])
    end
    return reply
end

-- The ranks are up to an eighth out of date (usage_flush.lua), so the most used are picked from twice as many.
local ids = redis.call('ZREVRANGE', K.usage_keys(account), 0, 2 * most - 1)
local uses, order = uses_of(ids), {}
for i = 1, #ids do
    order[i] = i
end
table.sort(order, function(a, b)
    if uses[a][1] ~= uses[b][1] then
        return uses[a][1] > uses[b][1]
    end
    return ids[a] > ids[b]
end)
local top = {}
for i = 1, math.min(most, #ids) do
    top[i] = ids[order[i]]
end
local refused = refused_of(top, {K.key_refused(account)})
for i, id in ipairs(top) do
    reply[i + 3] = row(id, string.format('%d', uses[order[i]][1]), {}, refused[i])
end
return reply

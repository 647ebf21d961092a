-- Adds a batch of usage. The numbers of one sender's batches rise; a batch that is sent again counts once.
-- ARGV: prefix, sender, sequence, then groups of what one account used in one mode on one day: account, mode, date, n,
--   n keys (each once), their n uses, their n last uses in ms
-- Returns: ok
-- Checks wait while a batch is written, so a group's keys are one read and one write, however many they are; the script
-- runs alone, so that nothing comes between the two.

local SEQUENCE_KEPT_S = 86400
local DAY_KEPT_S = 400 * 86400 -- longer than usage is listed (USAGE_DAYS_MAX)

local sequence_name, sequence = K.usage_sequence(ARGV[2]), ARGV[3]
local last = redis.call('GET', sequence_name)
if last and tonumber(sequence) <= tonumber(last) then
    return {'ok'}
end

local function day_add(account, day, id, uses)
    redis.call('HINCRBY', K.usage_of_day(account, day), id, string.format('%d', uses))
    redis.call('EXPIRE', K.usage_of_day(account, day), DAY_KEPT_S)
end

-- A key moves up among the most used ones when its total passes a multiple of an eighth of itself, give or take: to keep
-- the order exact would be half the work of a batch. Who lists them has the exact totals.
local function is_due(before, total)
    local _, exponent = math.frexp(total)
    local step = 2 ^ math.max(exponent - 4, 0)
    return math.floor(before / step) ~= math.floor(total / step)
end

-- All is read before anything is written: a batch that ends in an error is sent again, and must find nothing counted. One
-- key may be in several groups.
local groups, uses_of, at = {}, {}, 4
while at <= #ARGV do
    local group = {account = ARGV[at], mode = ARGV[at + 1], date = ARGV[at + 2], n = tonumber(ARGV[at + 3]), first = at + 4}
    local names = {unpack(ARGV, group.first, group.first + group.n - 1)}
    for i, packed in ipairs(redis.call('HMGET', K.key_use(group.account), unpack(names))) do
        uses_of[names[i]] = packed and {use_unpack(packed)} or {0, 0, group.date, 0}
    end
    groups[#groups + 1] = group
    at = group.first + 3 * group.n
end

-- A last use never goes back, and neither does the day of a record: what comes late, from a node that was slow about
-- midnight, goes where the days before are. Returns whether the key's rank is due.
local function key_add(use, account, date, id, uses, used)
    local last, total, day, on_day = unpack(use)
    if date > day then
        day_add(account, day, id, on_day)
        day, on_day = date, uses
    elseif date == day then
        on_day = on_day + uses
    else
        day_add(account, date, id, uses)
    end
    use[1], use[2], use[3], use[4] = math.max(last, used), total + uses, day, on_day
    return is_due(total, total + uses)
end

for _, group in ipairs(groups) do
    local account, date, n, first, sum, after, ranks = group.account, group.date, group.n, group.first, 0, {}, {}
    for i = 0, n - 1 do
        local id, uses, used = ARGV[first + i], tonumber(ARGV[first + n + i]), tonumber(ARGV[first + 2 * n + i])
        local use = uses_of[id]
        if key_add(use, account, date, id, uses, used) then
            ranks[#ranks + 1], ranks[#ranks + 2] = string.format('%d', use[2]), id
        end
        after[2 * i + 1], after[2 * i + 2] = id, use_pack(unpack(use))
        sum = sum + uses
    end
    redis.call('HINCRBY', K.usage(account), date .. ':' .. group.mode, string.format('%d', sum))
    redis.call('HSET', K.key_use(account), unpack(after))
    if #ranks > 0 then
        redis.call('ZADD', K.usage_keys(account), unpack(ranks))
    end
end
redis.call('SET', sequence_name, sequence, 'EX', SEQUENCE_KEPT_S)
return {'ok'}

-- Adds a batch of usage. The numbers of one sender's batches rise; a batch that is sent again counts once.
-- ARGV: prefix, sender, sequence, then groups of what one account used in one mode on one day: account, mode, date, n,
--   n keys (each once), their n uses, their n last uses in ms
-- Returns: ok
-- Checks wait while a batch is written, so it is one read and one write for each place, however many keys a group has;
-- the script runs alone, so that nothing comes between the two.

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

-- A last use never goes back, and neither does the day of a record: what comes late, from a node that was slow about
-- midnight, goes where the days before are.
local function keys_add(account, date, first, n)
    local before, after, ranks = redis.call('HMGET', K.key_use(account), unpack(ARGV, first, first + n - 1)), {}, {}
    for i = 1, n do
        local id, uses, last = ARGV[first + i - 1], tonumber(ARGV[first + n + i - 1]), tonumber(ARGV[first + 2 * n + i - 1])
        local total, day, on_day, total_before = uses, date, uses, 0
        if before[i] then
            local last_before, day_before, on_day_before
            last_before, total_before, day_before, on_day_before = use_unpack(before[i])
            last, total = math.max(last, last_before), total + total_before
            if day == day_before then
                on_day = uses + on_day_before
            elseif day > day_before then
                day_add(account, day_before, id, on_day_before)
            else
                day_add(account, day, id, uses)
                day, on_day = day_before, on_day_before
            end
        end
        after[2 * i - 1], after[2 * i] = id, use_pack(last, total, day, on_day)
        if is_due(total_before, total) then
            ranks[#ranks + 1] = string.format('%d', total)
            ranks[#ranks + 1] = id
        end
    end
    redis.call('HSET', K.key_use(account), unpack(after))
    if #ranks > 0 then
        redis.call('ZADD', K.usage_keys(account), unpack(ranks))
    end
end

local at = 4
while at <= #ARGV do
    local account, mode, date, n, first = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3]), at + 4
    local sum = 0
    for i = first + n, first + 2 * n - 1 do
        sum = sum + ARGV[i]
    end
    redis.call('HINCRBY', K.usage(account), date .. ':' .. mode, string.format('%d', sum))
    keys_add(account, date, first, n)
    at = first + 3 * n
end
redis.call('SET', sequence_name, sequence, 'EX', SEQUENCE_KEPT_S)
return {'ok'}

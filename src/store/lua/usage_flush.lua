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

local function counts_add(name, first, n)
    local before, after = redis.call('HMGET', name, unpack(ARGV, first, first + n - 1)), {}
    for i = 1, n do
        after[2 * i - 1] = ARGV[first + i - 1]
        local uses = ARGV[first + n + i - 1]
        after[2 * i] = before[i] and string.format('%.0f', before[i] + uses) or uses
    end
    redis.call('HSET', name, unpack(after))
end

local function totals_add(name, first, n)
    local before, after = redis.call('ZMSCORE', name, unpack(ARGV, first, first + n - 1)), {}
    for i = 1, n do
        local uses = ARGV[first + n + i - 1]
        after[2 * i - 1] = before[i] and string.format('%.0f', before[i] + uses) or uses
        after[2 * i] = ARGV[first + i - 1]
    end
    redis.call('ZADD', name, unpack(after))
end

-- A last use never goes back.
local function last_uses_set(name, first, n)
    local before, newer = redis.call('HMGET', name, unpack(ARGV, first, first + n - 1)), {}
    for i = 1, n do
        local used = ARGV[first + 2 * n + i - 1]
        if not before[i] or tonumber(used) > tonumber(before[i]) then
            newer[#newer + 1] = ARGV[first + i - 1]
            newer[#newer + 1] = used
        end
    end
    if #newer > 0 then
        redis.call('HSET', name, unpack(newer))
    end
end

local at = 4
while at <= #ARGV do
    local account, mode, date, n, first = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3]), at + 4
    local sum = 0
    for i = first + n, first + 2 * n - 1 do
        sum = sum + ARGV[i]
    end
    redis.call('HINCRBY', K.usage(account), date .. ':' .. mode, string.format('%.0f', sum))
    counts_add(K.usage_of_day(account, date), first, n)
    redis.call('EXPIRE', K.usage_of_day(account, date), DAY_KEPT_S)
    totals_add(K.usage_keys(account), first, n)
    last_uses_set(K.last_used(account), first, n)
    at = first + 3 * n
end
redis.call('SET', sequence_name, sequence, 'EX', SEQUENCE_KEPT_S)
return {'ok'}

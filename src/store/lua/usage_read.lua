-- Usage of some days, and of keys: of those that are named, each day; else the totals of the most used ones.
-- ARGV: prefix, account, most keys wanted, number of dates, date..., key...
-- Returns: ok, {requests in test mode, in live mode, for each date; nil: none}, {key, requests, name, mode, {requests for
--   each date; empty: not asked for}}...; name and mode '' where the account has no such key

local account, most, date_count = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local dates = {unpack(ARGV, 5, 4 + date_count)}
local asked = {unpack(ARGV, 5 + date_count)}

local fields = {}
for i, date in ipairs(dates) do
    fields[2 * i - 1], fields[2 * i] = date .. ':test', date .. ':live'
end

local function row(id, requests, by_day)
    local key = key_record(id)
    local is_ours = key and key.account == account
    return {id, requests, is_ours and key.name or '', is_ours and key.mode or '', by_day}
end

local reply = {'ok', redis.call('HMGET', K.usage(account), unpack(fields))}
if #asked > 0 then
    local days = {}
    for i, date in ipairs(dates) do
        days[i] = redis.call('HMGET', K.usage_of_day(account, date), unpack(asked))
    end
    for k, id in ipairs(asked) do
        local by_day, sum = {}, 0
        for i = 1, date_count do
            by_day[i] = days[i][k] or '0'
            sum = sum + by_day[i]
        end
        reply[k + 2] = row(id, string.format('%.0f', sum), by_day)
    end
    return reply
end
local totals = redis.call('ZREVRANGE', K.usage_keys(account), 0, most - 1, 'WITHSCORES')
for i = 1, #totals, 2 do
    reply[#reply + 1] = row(totals[i], totals[i + 1], {})
end
return reply

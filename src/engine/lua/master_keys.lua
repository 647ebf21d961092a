-- The names of the master keys that made this store's records. Notes the current one if the store has no records yet.
-- ARGV: prefix, current (name of the current master key), may_note (whether it may be noted, '1' or '0')
-- Returns: ok, whether the store has records but no noted key, as from an earlier version (1 or 0), until when records
--   without a seal are accepted ('' for not at all), name...

local CLASSES = {'ak-test', 'ak-live', 'dk'}

local function account_has_records(account)
    for _, class in ipairs(CLASSES) do
        if exists(K.account_keys(account, class .. ':active')) or exists(K.account_keys(account, class .. ':revoked')) then
            return true
        end
    end
    return exists(K.account_users(account))
end

local function store_has_records()
    for _, account in ipairs(redis.call('ZRANGE', K.accounts(), 0, -1)) do
        if account_has_records(account) then
            return true
        end
    end
    return false
end

local names = redis.call('SMEMBERS', K.master_keys())
local is_older = #names == 0 and store_has_records()
if #names == 0 and not is_older and may_note == '1' then
    redis.call('SADD', K.master_keys(), current)
    names = {current}
end
local reply = {'ok', is_older and 1 or 0, redis.call('GET', K.unsealed()) or ''}
for _, name in ipairs(names) do
    reply[#reply + 1] = name
end
return reply

#!lua flags=allow-oom
-- Puts tombstones in place of revoked keys, and removes all that was kept of each key: from now on it is in no list and
-- unknown by its id. A record that has changed since it was found is left alone.
-- ARGV: prefix, keys... {digest, record as it was found, name of its tombstone, tombstone}
-- Returns: ok, how many there were

-- As usage_read.lua has them.
local REASONS = {'revoked', 'insufficient_scope', 'mode_not_permitted', 'account_suspended'}

local tombs, names, members, fields = {}, {}, {}, {}

local function add(by_name, name, ...)
    by_name[name] = by_name[name] or {}
    for _, value in ipairs({...}) do
        table.insert(by_name[name], value)
    end
end

local buried = 0
for at = FIRST, #ARGV, EACH do
    local name = K.key(ARGV[at])
    if redis.call('GET', name) == ARGV[at + 1] then
        local record = key_unpack(ARGV[at + 1])
        local account, id = record.account, record.id
        tombs[#tombs + 1], tombs[#tombs + 2] = K.dead(ARGV[at + 2]), ARGV[at + 3]
        for _, gone in ipairs({name, K.key_id(id), K.refused_told(id), K.used_after(id)}) do
            names[#names + 1] = gone
        end
        add(members, K.account_keys(account, key_set(record.kind, record.mode, 'revoked')), id)
        add(members, K.usage_keys(account), id)
        add(fields, K.key_uses(account), id)
        add(fields, K.key_endings(account), id)
        for _, reason in ipairs(REASONS) do
            add(fields, K.key_refused(account), id .. ':' .. reason)
        end
        buried = buried + 1
    end
end
if buried > 0 then
    redis.call('MSET', unpack(tombs))
    redis.call('UNLINK', unpack(names))
end
for name, ids in pairs(members) do
    redis.call('ZREM', name, unpack(ids))
end
for name, keys in pairs(fields) do
    redis.call('HDEL', name, unpack(keys))
end
return {'ok', buried}

#!lua flags=allow-oom
-- The active keys of an account that go back to one person, some in each call. The work of one call is bounded. The first
-- call for a person marks that person as leaving (leaving_refused() in the prelude), and the later ones see that the
-- mark is still theirs: so nothing is made behind their back.
-- ARGV: prefix, account, user, which (keys are to be revoked: 'none', 'made': by the person or replacing such a key, or
--   'all'), token (name of the mark), cursor ('' in the first call), #most (keys to look at), takes_over (the mark of
--   another call, '1' or '0')
-- Returns: ok, cursor ('' if that was the end), {id, whether it is to be revoked (1 or 0)}...; conflict: the mark is gone; leaving:
--   another call has it.
--   The first call returns the keys that an earlier call for the person revoked. Keys of which it is not known whom they
--   go back to are among those that stay.

local SETS = {'ak-live:active', 'ak-test:active', 'dk:active'}

local leaving = K.account_leaving(account, user)
origin_steps_max = ORIGIN_STEPS_ALL
if cursor == '' then
    local reply, other = {'ok', '1 '}, redis.call('GET', leaving)
    if other and other ~= token and takes_over ~= '1' then
        return {'leaving'}
    end
    redis.call('SET', leaving, token, 'PX', LEAVING_MS)
    for _, name in ipairs({K.user_ended_keys(user), K.account_ended_keys(account, user)}) do
        for _, id in ipairs(which ~= 'none' and redis.call('SMEMBERS', name) or {}) do
            reply[#reply + 1] = {id, 1}
        end
    end
    return reply
end
if redis.call('GET', leaving) ~= token then
    return {'conflict'}
end
redis.call('PEXPIRE', leaving, LEAVING_MS)

-- Whether it is to be revoked; nil: it is another person's.
local function judge(record)
    local origin = key_origin(record)
    local is_made = key_field(record, 'by') == user or key_field(record, 'replacer') == user
    if origin ~= user and not is_made then
        return origin == '' and 0 or nil
    end
    return (which == 'all' or (which == 'made' and is_made)) and 1 or 0
end

local set, after = cursor:match('^(%d) (%S*)$')
set = tonumber(set)
local ids = redis.call('ZRANGEBYLEX', K.account_keys(account, SETS[set]), after ~= '' and '(' .. after or '-', '+',
                       'LIMIT', 0, most)
local reply, last = {'ok', ''}, nil
for i, id in ipairs(ids) do
    local judged = judge(key_record(id))
    if judged then
        reply[#reply + 1] = {id, judged}
    end
    -- What is left of the steps would not do for another long chain.
    if i == most or origin_steps > ORIGIN_STEPS_ALL / 2 then
        last = id
        break
    end
end
reply[2] = last and set .. ' ' .. last or SETS[set + 1] and set + 1 .. ' ' or ''
return reply

-- The sessions of some users.
-- ARGV: prefix, user...
-- Returns: ok, {sid, user, email, account, created, last seen, start of the step-up (0: none), end unless used, last
--   address, browser}...; times are in ms; address and browser are '' for a session of an earlier version

local now = now_ms()
local reply = {'ok'}
for i = 2, #ARGV do
    local user = user_record(ARGV[i], false)
    for _, digest in ipairs(user and redis.call('SMEMBERS', K.user_sessions(ARGV[i])) or {}) do
        local s = redis.call('HMGET', K.session(digest), 'sid', 'created', 'seen', 'step_up', 'ip', 'browser')
        local left = redis.call('PTTL', K.session(digest))
        if s[1] and left > 0 then
            reply[#reply + 1] = {s[1], user[1], user[3], user[2], s[2], s[3], s[4] or '0',
                                 string.format('%.0f', now + left), s[5] or '', s[6] or ''}
        end
    end
end
return reply

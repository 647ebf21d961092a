-- The sessions of some users.
-- ARGV: prefix, users...
-- Returns: ok, sessions (ROW_FIELDS in session_admin.c)...

local FIELDS = {'sid', 'created', 'seen', 'step_up', 'ip', 'browser'}

local now = now_ms()
local reply = {'ok'}
for i = FIRST, #ARGV do
    local user = user_record(ARGV[i])
    for _, digest in ipairs(user and redis.call('SMEMBERS', K.user_sessions(ARGV[i])) or {}) do
        local s = redis.call('HMGET', K.session(digest), unpack(FIELDS))
        local left = redis.call('PTTL', K.session(digest))
        if s[1] and left > 0 then
            reply[#reply + 1] = record_add(record_add({}, {'user', 'email', 'account', 'ends'},
                                                      {user.id, user.email, user.account, now + left}), FIELDS, s)
        end
    end
end
return reply

#!lua flags=allow-oom
-- Takes a TOTP step and creates a session. Ends the session that the sign-in came with, and the oldest ones beyond 20.
-- ARGV: prefix, user, step (of TOTP), digest, sid, attempt, tags (its counters in this partition), token (digest of the
--   browser's token; '' for none), presented_digest (of the session that it came with; '' if none is in this
--   partition), #limits {idle limit, absolute limit, step-up limit} (in ms), password (as verified; '': not compared),
--   totp (likewise), ip, request_id, events_kept, start, mac, browser (its name)
-- Returns: ok, session, then when sign-in was last closed to unknown browsers if not reported yet (else 0), notices;
--   refused, seconds to wait: a limit was reached since the attempt began; refused, 0: the user is locked or disabled;
--   not_found: no such user, or password or TOTP secret changed since they were verified; conflict, the last step used:
--   this step or a later one was used, or the digest exists; suspended: the account is suspended or closed, and the
--   code is used up
-- Events: session.created, session.ended, browser.new (not for the first one)

local SESSIONS_MAX = 20
local BROWSERS_MAX = 20
local BROWSER_MS = 365 * 24 * 60 * 60 * 1000
-- New browsers that notices tell.
local NEW_BROWSERS_MAX = 5
local NEW_BROWSER_MS = 30 * 24 * 60 * 60 * 1000

local now = now_ms()
local created = node_time(start, now)
local counters, guard = attempt_counters(tags), user_guard(user)
local known = redis.call('HMGET', K.user(user), 'account', 'password', 'totp', 'attacked', 'last_sign_in_at',
                         'last_sign_in_ip', 'failures', 'failures_seen', 'disabled')
if not known[1] or (password ~= '' and (known[2] ~= password or known[3] ~= totp)) then
    return {'not_found'}
end
local wait_s = attempt_wait_s(counters, now, guard.forgiven)
if wait_s or guard.locked or known[9] then
    return {'refused', wait_s or 0}
end
local taken = totp_step_taken(user, step)
if taken or exists(K.session(digest)) then
    return {'conflict', taken or tonumber(step)}
end
if account_status(known[1]) ~= 'active' then
    redis.call('HSET', K.user(user), 'totp_step', step)
    attempt_give_back(counters, attempt)
    return {'suspended'}
end

local function end_session(other, owner, account)
    session_forget(other, owner)
    audit(account, 'session.ended', owner, {owner, ip, request_id, events_kept})
end

redis.call('HSET', K.user(user), 'totp_step', step)
redis.call('HDEL', K.user(user), 'wrong_codes', 'attacked')
attempt_succeed(counters, attempt)
local presented = redis.call('HMGET', K.session(presented_digest), 'user', 'account')
if presented[1] then
    end_session(presented_digest, presented[1], presented[2])
end

-- Expired sessions are still in the user's set.
local sessions, live = K.user_sessions(user), {}
for _, other in ipairs(redis.call('SMEMBERS', sessions)) do
    local since = redis.call('HGET', K.session(other), 'created')
    if since then
        live[#live + 1] = {digest = other, since = tonumber(since)}
    else
        redis.call('SREM', sessions, other)
    end
end
table.sort(live, function(a, b) return a.since < b.since end)
for i = 1, #live - SESSIONS_MAX + 1 do
    end_session(live[i].digest, user, known[1])
end
redis.call('SADD', sessions, digest)
if redis.call('PTTL', sessions) < limits[2] then
    redis.call('PEXPIRE', sessions, limits[2])
end

local source = {user, ip, request_id, events_kept}
audit(known[1], 'session.created', user, source)

-- The browser is known from now on. The least recently used one makes room.
local browsers = K.user_browsers(user)
local seen = token ~= '' and redis.call('ZSCORE', browsers, token)
if token ~= '' and not seen and exists(browsers) then
    audit(known[1], 'browser.new', user, source, {data = {browser = browser}})
    redis.call('LPUSH', K.user_new_browsers(user), string.format('%.0f %s %s %s', now, sid, ip, browser))
    redis.call('LTRIM', K.user_new_browsers(user), 0, NEW_BROWSERS_MAX - 1)
    redis.call('PEXPIRE', K.user_new_browsers(user), NEW_BROWSER_MS)
end
if token ~= '' then
    redis.call('ZADD', browsers, now, token)
    redis.call('ZREMRANGEBYSCORE', browsers, '-inf', now - BROWSER_MS)
    redis.call('ZREMRANGEBYRANK', browsers, 0, -1 - BROWSERS_MAX)
    redis.call('PEXPIRE', browsers, BROWSER_MS)
end

local ends = created + limits[2]
local session = {sid = sid, user = user, account = known[1], created = created, expires = ends, ends = ends,
                 step_up = 0, mac = mac}
redis.call('HSET', K.session(digest), 'sid', session.sid, 'user', user, 'account', known[1], 'created', created,
           'expires', ends, 'mac', session.mac, 'ip', ip, 'browser', browser, 'since', seen or known[5] or now,
           'last_at', known[5] or 0, 'last_ip', known[6] or '', 'failures', known[8] or 0, 'attacked', known[4] or 0)
session_touch(digest, session, limits, now)
redis.call('HSET', K.user(user), 'last_sign_in_at', now, 'last_sign_in_ip', ip, 'failures_seen', known[7] or 0)
local reply = session_reply(session, limits, now)
reply[#reply + 1] = tonumber(known[4] or '0')
reply[#reply + 1] = notices(user, digest)
return reply

#!lua flags=allow-oom
-- Makes the link of a reset. The user's password, authenticator, recovery codes, known browsers and sessions end with
-- it, and whatever was counted against the user.
-- ARGV: prefix, digest, id, user, account ('' for any), expires, MAC, created, what replaces the sealed TOTP secret,
--   actor, ip, request id, events to keep, the actor's credential, role as read
-- Returns: ok, sessions that ended; not_found: no such user in the account; refused: the account would be left without
--   an owner who can sign in (commands are not refused); as actor_refused()
-- Events: user.reset, user.unlocked, session.ended

local digest, user, now, source = ARGV[2], ARGV[4], now_ms(), source_from(10)
local u = redis.call('HMGET', K.user(user), 'account', 'email', 'role')
local account = u[1]
if not account or (ARGV[5] ~= '' and account ~= ARGV[5]) then
    return {'not_found'}
end
local refused = actor_refused(ARGV[14], ARGV[10], account)
if refused then
    return refused
end
local last = ARGV[14] ~= '' and (u[3] or 'owner') == 'owner' and last_owner_refused(account, user)
if last then
    return last
end
node_time(ARGV[8], now)

links_end(user, now)
local ended = sessions_end(user, account, '', '', source)
factors_forget(user)
redis.call('HSET', K.user(user), 'password', NO_PASSWORD, 'totp', ARGV[9], 'link', digest)
redis.call('HDEL', K.user(user), 'totp_step', 'password_expired')
if user_guard(user).locked then
    audit(account, 'user.unlocked', user, source)
end
user_forgive(user, now)
redis.call('HSET', K.link(digest), 'id', ARGV[3], 'account', account, 'email', u[2], 'role', ARGV[15],
           'user', user, 'by', ARGV[10], 'ip', ARGV[11], 'created', ARGV[8], 'expires', ARGV[6], 'mac', ARGV[7])
redis.call('PEXPIREAT', K.link(digest), ARGV[6])
audit(account, 'user.reset', user, source)
return {'ok', ended}

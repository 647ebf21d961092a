#!lua flags=allow-oom
-- Makes the link of a reset. The user's password, authenticator, recovery codes, known browsers and sessions end with
-- it, and whatever was counted against the user.
-- ARGV: prefix, digest, id, user, of (an account; '' for any), expires, mac, created, totp (what replaces the sealed
--   secret), source {actor, ip, request_id, events_kept}, credential (the actor's), role (as read)
-- Returns: ok, sessions that ended; not_found: no such user in the account; refused: the account would be left without
--   an owner who can sign in (commands are not refused); as actor_refused()
-- Events: user.reset, user.unlocked, session.ended

local now = now_ms()
local u = redis.call('HMGET', K.user(user), 'account', 'email', 'role')
local account = u[1]
if not account or (of ~= '' and account ~= of) then
    return {'not_found'}
end
local refused = actor_refused(credential, actor, account)
if refused then
    return refused
end
local last = credential ~= '' and (u[3] or 'owner') == 'owner' and last_owner_refused(account, user)
if last then
    return last
end
node_time(created, now)

links_end(user, now)
local ended = sessions_end(user, account, '', '', source)
factors_forget(user)
redis.call('HSET', K.user(user), 'password', NO_PASSWORD, 'totp', totp, 'link', digest)
redis.call('HDEL', K.user(user), 'totp_step', 'password_expired')
if user_guard(user).locked then
    audit(account, 'user.unlocked', user, source)
end
user_forgive(user, now)
redis.call('HSET', K.link(digest), 'id', id, 'account', account, 'email', u[2], 'role', role,
           'user', user, 'by', actor, 'ip', ip, 'created', created, 'expires', expires, 'mac', mac)
redis.call('PEXPIREAT', K.link(digest), expires)
audit(account, 'user.reset', user, source)
return {'ok', ended}

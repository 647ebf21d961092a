#!lua flags=allow-oom
-- Removes a user, all sessions and all links. The email is released next (email_release.lua).
-- ARGV: prefix, user, account, source {actor, ip, request_id, events_kept}, [told {which, revoked, kept, revoked_count,
--   kept_count} (as for keys_told() in the prelude)]
-- Returns: ok, sessions that ended, also if the user was removed before; not_found: no such user in the account; refused: the account would be left without
--   an owner who can sign in
-- Events: user.removed, session.ended

local u = redis.call('HMGET', K.user(user), 'account', 'email', 'role')
if u[1] ~= account then
    return person_gone(account, user) and {'ok', 0} or {'not_found'}
end
local last = (u[3] or 'owner') == 'owner' and last_owner_refused(account, user)
if last then
    return last
end

local ended = sessions_end(user, account, '', '', source)
user_erase(user, account, u[2])
audit(account, 'user.removed', user, source, {data = keys_told(told, {email = u[2], role = u[3] or 'owner'})})
return {'ok', ended}

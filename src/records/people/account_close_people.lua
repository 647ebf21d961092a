#!lua flags=allow-oom
-- Removes some of the people of an account that is being closed, with their sessions. Their emails are released next
-- (email_release.lua).
-- ARGV: prefix, account, source {actor, ip, request_id, events_kept}
-- Returns: ok, how many were removed, whether that was all (1 or 0), how many sessions ended, {user, email} of
--   each; conflict: it is not being closed
-- Events: session.ended and user.removed, for each

local USERS_MAX = 20

if account_status(account) ~= 'closing' then
    return {'conflict'}
end
local ended, removed, users = 0, {}, redis.call('SRANDMEMBER', K.account_users(account), USERS_MAX)
for _, user in ipairs(users) do
    ended = ended + sessions_end(user, account, '', '', source)
    local email = redis.call('HGET', K.user(user), 'email') or ''
    removed[#removed + 1] = {user, email}
    user_erase(user, account, email)
    audit(account, 'user.removed', user, source)
end
local is_all = redis.call('SCARD', K.account_users(account)) == 0
if is_all then
    redis.call('UNLINK', K.account_people(account), K.account_owners(account), K.account_invitations(account),
               K.account_invited(account))
end
return {'ok', #users, is_all and 1 or 0, ended, removed}

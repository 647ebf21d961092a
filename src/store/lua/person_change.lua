#!lua flags=allow-oom
-- Changes the role of a user, disables or enables one. The node has made the new MAC from the record that it read, so
-- the record must still be that. Disabling ends all sessions and links. Repeating changes nothing and writes no event.
-- ARGV: prefix, user, account, MAC as read, new MAC, role, disabled since ('' for an active user), actor, ip, request
--   id, events to keep, the actor's credential
-- Returns: ok, sessions that ended, person_reply(); not_found: no such user in the account; conflict: the record has
--   changed; refused: the account would be left without an owner who can sign in; as actor_refused()
-- Events: user.role_changed, user.disabled, user.enabled, session.ended

local user, account, role, disabled = ARGV[2], ARGV[3], ARGV[6], ARGV[7]
local refused = actor_refused(ARGV[12], ARGV[8], account)
if refused then
    return refused
end
local was = redis.call('HMGET', K.user(user), 'account', 'mac', 'role', 'disabled')
if was[1] ~= account then
    return {'not_found'}
end
if (was[2] or '') ~= ARGV[4] then
    return {'conflict'}
end
local now, source = now_ms(), source_from(8)
local from, was_disabled = was[3] or 'owner', was[4] or ''
local demotes, disables = from == 'owner' and role ~= from, disabled ~= '' and was_disabled == ''
if disables then
    node_time(disabled, now)
end
local last = from == 'owner' and (demotes or disables) and last_owner_refused(account, user)
if last then
    return last
end

redis.call('HSET', K.user(user), 'mac', ARGV[5])
user_put_state(user, role, disabled)
people_put(account, user, role, disabled)
if demotes or disabled ~= '' then
    links_end(user, now)
end
if role ~= from then
    audit(account, 'user.role_changed', user, source, {data = {from = from, to = role}})
end
if disables then
    audit(account, 'user.disabled', user, source)
elseif disabled == '' and was_disabled ~= '' then
    redis.call('DEL', K.user_ended_keys(user))
    audit(account, 'user.enabled', user, source)
end
local ended = disabled ~= '' and sessions_end(user, account, '', '', source) or 0
return {'ok', ended, person_reply(user)}

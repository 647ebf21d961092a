#!lua flags=allow-oom
-- Changes the role of a user, disables or enables one. The node has made the new MAC from the record that it read, so
-- the record must still be that. Disabling ends all sessions and links. Repeating changes nothing and writes no event.
-- ARGV: prefix, user, account, mac_read, mac, role, disabled (since; '' for an active user), source {actor, ip,
--   request_id, events_kept}, credential (the actor's), token (name of the mark, see person_keys.lua; '': none),
--   revokes (whether keys are revoked next, '1' or '0'), [told {which, revoked, kept, revoked_count, kept_count} (as
--   for keys_told() in the prelude)]
-- Returns: ok, sessions that ended, person_reply(); not_found: no such user in the account; conflict: the record has
--   changed, or the mark is gone; refused: the account would be left without an owner who can sign in; as actor_refused()
-- Events: user.role_changed, user.disabled, user.enabled, session.ended

local leaving = K.account_leaving(account, user)

local function change()
    local refused = actor_refused(credential, actor, account)
    if refused then
        return refused
    end
    if token ~= '' and redis.call('GET', leaving) ~= token then
        return {'conflict'}
    end
    local was = redis.call('HMGET', K.user(user), 'account', 'mac', 'role', 'disabled')
    if was[1] ~= account then
        local gone = person_gone(account, user)
        return gone and disabled ~= '' and {'ok', 0, gone} or {'not_found'}
    end
    if (was[2] or '') ~= mac_read then
        return {'conflict'}
    end
    local now = now_ms()
    local from, was_disabled = was[3] or 'owner', was[4] or ''
    local demotes, disables = from == 'owner' and role ~= from, disabled ~= '' and was_disabled == ''
    if disables then
        node_time(disabled, now)
    end
    local last = from == 'owner' and (demotes or disables) and last_owner_refused(account, user)
    if last then
        return last
    end

    redis.call('HSET', K.user(user), 'mac', mac)
    user_put_state(user, role, disabled)
    people_put(account, user, role, disabled)
    if demotes or disabled ~= '' then
        links_end(user, now)
    end
    if role ~= from then
        audit(account, 'user.role_changed', user, source, {data = keys_told(told, {from = from, to = role})})
    end
    if disables then
        audit(account, 'user.disabled', user, source, {data = keys_told(told)})
    elseif disabled == '' and was_disabled ~= '' then
        redis.call('DEL', K.user_ended_keys(user))
        audit(account, 'user.enabled', user, source)
    end
    local ended = disabled ~= '' and sessions_end(user, account, '', '', source) or 0
    return {'ok', ended, person_reply(user)}
end

local reply = change()
if reply[1] == 'again' then
    return reply
end
if token ~= '' and redis.call('GET', leaving) == token then
    if reply[1] == 'ok' and revokes == '1' then
        redis.call('PEXPIRE', leaving, LEAVING_MS)
    else
        redis.call('DEL', leaving)
    end
end
return reply

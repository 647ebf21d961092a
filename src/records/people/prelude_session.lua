-- Part of the prelude (engine/lua/prelude.lua): sessions, and whether an actor may still act.

-- A TOTP code is accepted once: its step must be later than the last one used. If it is not, returns that last step.
local function totp_step_taken(user, step)
    local last = tonumber(redis.call('HGET', K.user(user), 'totp_step'))
    return last and tonumber(step) <= last and last
end

-- Removes a session and its entry in the user's set.
local function session_forget(digest, user)
    redis.call('DEL', K.session(digest))
    redis.call('SREM', K.user_sessions(user), digest)
end

-- Returns a session {sid, user, account, created, expires, seen, step_up, ends, mac} with times as numbers, and whether
-- it is over by the current limits; nil if unknown. ends: its end by the limits in force when it was created, which its
-- MAC binds. mac: '' for none. limits: {idle, absolute, step-up window} in ms. A disabled user has no sessions. Writes
-- nothing.
local function session_look(digest, limits, now)
    local s = redis.call('HMGET', K.session(digest), 'sid', 'user', 'account', 'created', 'expires', 'seen',
                         'step_up', 'mac')
    if not s[1] then
        return nil
    end
    local session = {sid = s[1], user = s[2], account = s[3], created = tonumber(s[4]), ends = tonumber(s[5]),
                     seen = tonumber(s[6]), step_up = tonumber(s[7] or '0'), mac = s[8] or ''}
    session.expires = math.min(session.ends, session.created + limits[2])
    local user = redis.call('HMGET', K.user(session.user), 'account', 'disabled')
    return session, now >= session.expires or now - session.seen >= limits[1] or not user[1] or user[2] and true
end

-- A live session, as in session_look(). nil if it is unknown or over; one that is over is removed.
local function session_read(digest, limits, now)
    local session, over = session_look(digest, limits, now)
    if over then
        session_forget(digest, session.user)
        return nil
    end
    return session
end

-- Notes a use of the session. It then lives until the idle limit or its end, whichever comes first.
local function session_touch(digest, session, limits, now)
    redis.call('HSET', K.session(digest), 'seen', now)
    redis.call('PEXPIRE', K.session(digest), math.min(limits[1], session.expires - now))
end

-- A session's MAC binds times, and a node makes the MAC. So the node supplies the time, by its estimate of this clock.
-- An estimate too far off is an error.
local CLOCK_APART_MS = 10000

local function node_time(given, now)
    local ms = tonumber(given)
    if math.abs(ms - now) > CLOCK_APART_MS then
        error('the node\'s estimate of this clock is ' .. string.format('%.0f', ms - now) .. ' ms too high')
    end
    return ms
end

-- A session as all scripts return it: ok, session (SESSION_FIELDS in session_store.c), user record.
local function session_reply(session, limits, now)
    local step_up_expires = session.step_up > 0 and session.step_up + limits[3] or 0
    if step_up_expires <= now then
        step_up_expires = 0
    end
    return {'ok', record_add({}, {'sid', 'account', 'created', 'expires', 'ends', 'step_up', 'step_up_expires', 'mac',
                                  'password_expired'},
                             {session.sid, session.account, session.created, session.expires, session.ends,
                              session.step_up, math.min(step_up_expires, session.expires), session.mac,
                              redis.call('HEXISTS', K.user(session.user), 'password_expired')}),
            user_record(session.user)}
end

-- Gives a session a new digest and a fresh step-up. The old digest is unknown from now on.
local function session_rotate(old, new, session, step_up, mac)
    redis.call('RENAME', K.session(old), K.session(new))
    redis.call('SADD', K.user_sessions(session.user), new) -- first: an empty set is gone, and its time to live with it
    redis.call('SREM', K.user_sessions(session.user), old)
    redis.call('HSET', K.session(new), 'step_up', step_up, 'mac', mac)
    session.step_up, session.mac = step_up, mac
end

-- Ends all sessions of a user except the one with this digest ('' for none), or only the one with this sid ('' for
-- all). Writes session.ended for each. Returns how many.
local function sessions_end(user, account, except, sid, source)
    local ended = 0
    for _, digest in ipairs(redis.call('SMEMBERS', K.user_sessions(user))) do
        local found = redis.call('HGET', K.session(digest), 'sid')
        if not found then
            redis.call('SREM', K.user_sessions(user), digest) -- it has expired
        elseif digest ~= except and (sid == '' or found == sid) then
            session_forget(digest, user)
            audit(account, 'session.ended', user, source)
            ended = ended + 1
        end
    end
    return ended
end

-- Whether the actor of a change may still make it. A request's credential is checked when its head arrives. While its
-- body is under way the key may be revoked or the session may end. So each script that creates, approves, denies or
-- revokes checks again, in the step that takes effect.
-- credential: '' for commands and the node itself, 'key <digest>', or 'session <digest> <idle> <absolute> <step-up>
-- <least role>' with limits in ms; step-up is 0 if none is required.
-- Returns nil if it may. Otherwise the script's reply, and nothing was written: actor_unknown, actor_unproven,
-- actor_role, actor_revoked, or suspended, which tells that its account is suspended or closed.
local function actor_refused(credential, actor, account)
    if credential == '' then
        return nil
    end
    local digest, idle, absolute, step_up, least = credential:match('^session (%S+) (%d+) (%d+) (%d+) (%l+)$')
    if digest then
        local limits, now = {tonumber(idle), tonumber(absolute), tonumber(step_up)}, now_ms()
        local session, over = session_look(digest, limits, now)
        local user = redis.call('HMGET', K.user(actor), 'account', 'role')
        if not session or over or session.user ~= actor or user[1] ~= account then
            return {'actor_unknown'}
        end
        if ROLE_RANKS[user[2] or 'owner'] < ROLE_RANKS[least] then
            return {'actor_role'}
        end
        if limits[3] > 0 and now >= session.step_up + limits[3] then
            return {'actor_unproven'}
        end
        return account_status(account) ~= 'active' and {'suspended'} or nil
    end
    local packed = redis.call('GET', K.key(credential:match('^key (%S+)$')))
    local key = packed and key_unpack(packed)
    if not key or key.id ~= actor or key.account ~= account then
        return {'actor_unknown'}
    end
    if key.revoked then
        return {'actor_revoked'}
    end
    return account_status(account) ~= 'active' and {'suspended'} or nil
end

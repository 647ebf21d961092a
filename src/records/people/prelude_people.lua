-- Part of the prelude (engine/lua/prelude.lua): users, and links.

-- What a user of each role may do, the lowest first (core/account.h). A record without a role is an owner's.
local ROLE_RANKS = {auditor = 1, responder = 2, developer = 3, owner = 4}

-- A user as all scripts return it (USER_FIELDS in account_store.c); nil if the id is unknown. Behind it: names of
-- further fields. 'password' and 'totp' are secrets.
local function user_record(user, ...)
    local names = {'account', 'email', 'created', 'mac', 'role', 'disabled', ...}
    local values = redis.call('HMGET', K.user(user), unpack(names))
    if not values[1] then
        return nil
    end
    values[5] = values[5] or 'owner'
    return record_add(record_add({}, {'id', 'account_name'}, {user, redis.call('HGET', K.account(values[1]), 'name')}),
                      names, values)
end

-- Writes role and state of a user, '' for an active one. Only what an active owner lacks is stored, see
-- user_seal_fill() in account_store.c.
local function user_put_state(user, role, disabled)
    redis.call('HDEL', K.user(user), 'role', 'disabled')
    if role ~= 'owner' or disabled ~= '' then
        redis.call('HSET', K.user(user), 'role', role)
    end
    if disabled ~= '' then
        redis.call('HSET', K.user(user), 'disabled', disabled)
    end
end

local INDEX_PORTION = 100 -- users: about a millisecond where none is in the processor's cache
local INDEX_PLACE_MS = 60000

-- An account's people by id, for pages, and the owners among them who are not disabled. Versions without roles keep
-- only the set of users, so whoever is missing is added, some in each call. nil: not all are there yet, so the script
-- returns {'again'}.
local function people_index(account)
    local people, users, place = K.account_people(account), K.account_users(account), K.account_people_place(account)
    local missing = redis.call('SCARD', users) - redis.call('ZCARD', people)
    if missing == 0 then
        return people
    end
    if missing < 0 then
        redis.call('UNLINK', people, K.account_owners(account), place)
    end
    local found = redis.call('SSCAN', users, redis.call('GET', place) or '0', 'COUNT', INDEX_PORTION)
    for _, user in ipairs(found[2]) do
        local u = redis.call('HMGET', K.user(user), 'role', 'disabled')
        redis.call('ZADD', people, 0, user)
        if (u[1] or 'owner') == 'owner' and not u[2] then
            redis.call('SADD', K.account_owners(account), user)
        end
    end
    redis.call('SET', place, found[1], 'PX', INDEX_PLACE_MS)
    return redis.call('SCARD', users) == redis.call('ZCARD', people) and people or nil
end

-- disabled: '' for an active user.
local function people_put(account, user, role, disabled)
    redis.call('SADD', K.account_users(account), user)
    redis.call('ZADD', K.account_people(account), 0, user)
    redis.call(role == 'owner' and disabled == '' and 'SADD' or 'SREM', K.account_owners(account), user)
end

-- Instead of a password hash: the user must first use a reset's link.
local NO_PASSWORD = '-'

-- nil if the account has another owner who can sign in: active, not locked, with a password. Otherwise the script's
-- reply: refused, or again.
local function last_owner_refused(account, user)
    if not people_index(account) then
        return {'again'}
    end
    local place = '0'
    repeat
        local found = redis.call('SSCAN', K.account_owners(account), place)
        place = found[1]
        for _, other in ipairs(found[2]) do
            local u = redis.call('HMGET', K.user(other), 'role', 'disabled', 'locked', 'password')
            if other ~= user and (u[1] or 'owner') == 'owner' and not u[2] and not u[3] and u[4]
                and u[4] ~= NO_PASSWORD then
                return nil
            end
        end
    until place == '0'
    return {'refused'}
end

-- A user as lists show it (PERSON_FIELDS in people_store.c).
local function person_reply(user)
    local person = user_record(user, 'locked', 'last_sign_in_at')
    if person and redis.call('HGET', K.user(user), 'password') == NO_PASSWORD then
        record_add(person, {'invited'}, {1}) -- a link must be used first
    end
    return person
end

-- What is kept of a person who was removed: '<created> <role> <disabled since> <MAC>', beside the email.
-- Returns as person_reply(); nil: there was no such person, or an earlier version removed them.
local function person_gone(account, user)
    local kept = redis.call('HGET', K.account_gone_people(account), user)
    local created, role, disabled, mac = (kept or ''):match('^(%d+) (%l+) (%d+) (%S+)$')
    if not created then
        return nil
    end
    return record_add({}, {'id', 'account', 'email', 'created', 'role', 'disabled', 'mac', 'account_name'},
                      {user, account, redis.call('HGET', K.account_gone(account), user) or '', created, role, disabled, mac,
                       redis.call('HGET', K.account(account), 'name')})
end

-- What an event about a person tells of that person's keys, added to data (nil: nothing else). told: {which were to be
-- revoked; the first ids of those that are, and of those that are kept, separated by blanks; how many there are of
-- each}; or {}.
local function keys_told(told, data)
    data = data or {}
    if not told[1] then
        return data
    end
    data.revoke_keys, data.keys_revoked_count, data.keys_kept_count = told[1], told[4], told[5]
    data.keys_revoked = told[2] ~= '' and told[2] or nil
    data.keys_kept = told[3] ~= '' and told[3] or nil
    return data
end

-- A link: an invitation ('user' is empty), or a reset of a user. The set of invitations has '<id> <digest> <email>'.
local LINK_FIELDS = {'id', 'account', 'email', 'role', 'user', 'by', 'created', 'expires', 'mac', 'totp'}
-- How long a browser that has started may take, as long as its cookie lasts (src/api/session_cookie.c).
local LINK_START_MS = 30 * 60 * 1000

local function link_forget(link)
    redis.call('DEL', K.link(link.digest))
    if link.user ~= '' then
        if redis.call('HGET', K.user(link.user), 'link') == link.digest then
            redis.call('HDEL', K.user(link.user), 'link')
        end
        return
    end
    redis.call('ZREM', K.account_invitations(link.account), link.id .. ' ' .. link.digest .. ' ' .. link.email)
    if redis.call('HGET', K.account_invited(link.account), link.email) == link.digest then
        redis.call('HDEL', K.account_invited(link.account), link.email)
    end
end

-- Whether whoever made a link may still make links: an owner, whose links of before a given time have ended; a key
-- that is not revoked, and with which the person that it goes back to made the link after such a time; an operator.
local function link_maker_may(by, account, created)
    local kind = by:sub(1, 4)
    if kind == 'usr_' then
        local u = redis.call('HMGET', K.user(by), 'account', 'role', 'disabled', 'links_ended')
        return u[1] == account and (u[2] or 'owner') == 'owner' and not u[3] and created > tonumber(u[4] or '0')
    end
    local key = kind == 'key_' and key_record(by)
    if not key then
        return kind ~= 'key_'
    end
    local origin = key_origin(key)
    if origin == '' then
        return false
    end
    local gone = person_gone(account, origin)
    local ended = gone and tonumber(gone.disabled) or tonumber(redis.call('HGET', K.user(origin), 'links_ended') or '0')
    return key.account == account and not key.revoked and created > ended
end

-- The link of a digest; nil if there is none that can be used. One that has ended in any way is removed.
local function link_read(digest, now)
    local values = redis.call('HMGET', K.link(digest), unpack(LINK_FIELDS))
    if not values[1] then
        return nil
    end
    local link = {digest = digest}
    for i, field in ipairs(LINK_FIELDS) do
        link[field] = values[i] or ''
    end
    local user = link.user ~= '' and redis.call('HMGET', K.user(link.user), 'account', 'link')
    local may = link.by == link.user or link_maker_may(link.by, link.account, tonumber(link.created))
    if now >= tonumber(link.expires) or not may
        or (user and (user[1] ~= link.account or user[2] ~= digest)) then
        link_forget(link)
        return nil
    end
    if now >= tonumber(redis.call('HGET', K.link(digest), 'started') or '0') + LINK_START_MS then
        link.totp = ''
    end
    return link
end

-- The link of a member of the set of invitations; nil if it has ended, then the member is removed.
local function invitation_read(account, member, now)
    local digest, email = member:match('^%S+ (%S+) (%S+)$')
    local link = digest and link_read(digest, now)
    if not link then
        redis.call('ZREM', K.account_invitations(account), member)
        if email and redis.call('HGET', K.account_invited(account), email) == digest then
            redis.call('HDEL', K.account_invited(account), email)
        end
    end
    return link
end

-- The set is in the order in which invitations were made, and they last equally long. So whoever makes one looks at the
-- oldest, and none that has ended counts for long.
local INVITATIONS_SWEPT = 16

local function invitations_sweep(account, now)
    for _, member in ipairs(redis.call('ZRANGE', K.account_invitations(account), 0, INVITATIONS_SWEPT - 1)) do
        invitation_read(account, member, now)
    end
end

-- A link as scripts return it (LINK_FIELDS in link_store.c).
local function link_reply(link)
    local name = redis.call('HGET', K.account(link.account), 'name')
    local reply = record_add({}, {'digest', 'account_name'}, {link.digest, name})
    for _, field in ipairs(LINK_FIELDS) do
        record_add(reply, {field}, {link[field] ~= '' and link[field]})
    end
    return reply
end

-- The links that a user made, and the one for the user, end.
local function links_end(user, now)
    local digest = redis.call('HGET', K.user(user), 'link')
    if digest then
        redis.call('DEL', K.link(digest))
        redis.call('HDEL', K.user(user), 'link')
    end
    redis.call('HSET', K.user(user), 'links_ended', now)
end

-- Part of the prelude (engine/lua/prelude.lua): emails, proofs, second factors, and a user's end.

-- Whose email it is: user and account; nil: nobody's. A store of one partition may name the user alone, whose record
-- is here then.
local function email_owner(email)
    local owner = redis.call('GET', K.email(email)) or ''
    local user, account = owner:match('^(%S+) (%S+)$')
    if not user then
        user, account = owner, redis.call('HGET', K.user(owner), 'account')
    end
    if not account then
        return nil
    end
    return user, account
end

-- Who claims an email (src/records/people/email_claim.h), as the claim says. '': nobody.
local function email_claimant(email)
    return (redis.call('GET', K.email(email)) or ''):match('^%S*')
end

-- Whether a creation of this user was done before.
local function user_was_created(user, account, email)
    local u = redis.call('HMGET', K.user(user), 'account', 'email')
    return u[1] == account and u[2] == email
end

-- {forgiven, locked}: when an operator cleared the user's counters (0: never), and whether wrong codes with the right
-- password locked the user. user may be nil or false.
local function user_guard(user)
    local g = user and redis.call('HMGET', K.user(user), 'forgiven', 'locked') or {false, false}
    return {forgiven = tonumber(g[1] or '0'), locked = g[2] and true or false}
end

-- Checks a proof: password and code were right for a live session. No limit may have been reached since the attempt
-- began, and the code's step must be unused. Returns the session, with the counters of the attempt; otherwise nil and
-- the script's reply: 'not_found' (the session is over), 'suspended' (its account is), 'refused' and seconds to wait (0:
-- the user is locked), 'conflict' and the last step used.
local function proof_check(digest, step, counter_list, limits, now)
    local session = session_read(digest, limits, now)
    if not session then
        return nil, {'not_found'}
    end
    if account_status(session.account) ~= 'active' then
        return nil, {'suspended'}
    end
    local counters, guard = attempt_counters(counter_list), user_guard(session.user)
    local wait_s = attempt_wait_s(counters, now, guard.forgiven)
    if wait_s or guard.locked then
        return nil, {'refused', wait_s or 0}
    end
    local taken = totp_step_taken(session.user, step)
    if taken then
        return nil, {'conflict', taken}
    end
    session.counters = counters
    return session
end

-- Takes the step of a proof that was checked, and ends its attempt.
local function proof_take(session, step, attempt)
    redis.call('HSET', K.user(session.user), 'totp_step', step)
    redis.call('HDEL', K.user(session.user), 'wrong_codes')
    attempt_succeed(session.counters, attempt)
end

-- A new authenticator waits in user:<id>:new_totp until a code of it confirms it: {totp: the sealed secret; by: who may
-- confirm it, the sid of a session or the digest of a recovery's ticket; code: the digest of the recovery code, if any;
-- tries}. One at a time for each user: a later one replaces it.
local NEW_TOTP_MS = 10 * 60 * 1000

local function new_totp_forget(user)
    local by = redis.call('HGET', K.user_new_totp(user), 'by')
    if by then
        redis.call('DEL', K.user_new_totp(user), K.recovery(by))
    end
end

-- Removes what belongs to a user's factors and browsers.
local function factors_forget(user)
    new_totp_forget(user)
    redis.call('DEL', K.user_browsers(user), K.user_new_browsers(user), K.user_recovery_codes(user))
end

-- How long a call that revokes a person's keys, and was not answered, may be repeated and says so of each.
local ENDED_KEYS_MS = 24 * 60 * 60 * 1000

-- Removes a user with all links. The trail keeps the email, which the node releases next (email_release.lua).
local function user_erase(user, account, email)
    local u = user_record(user)
    links_end(user, now_ms())
    factors_forget(user)
    if u and (u.mac or '') ~= '' and tonumber(u.disabled or '0') > 0 then
        redis.call('HSET', K.account_gone_people(account), user,
                   string.format('%s %s %s %s', u.created, u.role, u.disabled, u.mac))
    end
    if exists(K.user_ended_keys(user)) then
        redis.call('RENAME', K.user_ended_keys(user), K.account_ended_keys(account, user))
        redis.call('PEXPIRE', K.account_ended_keys(account, user), ENDED_KEYS_MS)
    end
    redis.call('DEL', K.user(user))
    redis.call('SREM', K.account_users(account), user)
    redis.call('ZREM', K.account_people(account), user)
    redis.call('SREM', K.account_owners(account), user)
    redis.call('HSET', K.account_gone(account), user, email)
    redis.call('ZADD', K.account_gone_since(account), now_ms(), user)
end

-- code: nil for a session's.
local function new_totp_begin(user, totp, by, code)
    new_totp_forget(user)
    redis.call('HSET', K.user_new_totp(user), 'totp', totp, 'by', by, unpack(code and {'code', code} or {}))
    redis.call('PEXPIRE', K.user_new_totp(user), NEW_TOTP_MS)
end

-- The digest of the user's recovery code among these (one per master key, as known_digest() takes them); nil if none is.
local function recovery_code_find(user, digests)
    for digest in digests:gmatch('[^,]+') do
        if redis.call('SISMEMBER', K.user_recovery_codes(user), digest) == 1 then
            return digest
        end
    end
    return nil
end

-- What the user should know at a session's beginning and while it lasts: {the sign-in before it (0: none), its address,
-- failed sign-ins since then, when guesses closed sign-in to unknown browsers, when a recovery code was used (0: not
-- since this browser's last sign-in), {time, address, browser} of each new browser since then}. A session of an earlier
-- version knows nothing of what was before it.
local function notices(user, digest)
    local s = redis.call('HMGET', K.session(digest), 'sid', 'since', 'failures', 'last_at', 'last_ip', 'attacked')
    local u = redis.call('HMGET', K.user(user), 'failures', 'recovered')
    local since, recovered = tonumber(s[2]) or math.huge, tonumber(u[2] or '0')
    local found, browsers = redis.call('LRANGE', K.user_new_browsers(user), 0, -1), {}
    for _, line in ipairs(found) do
        local at, sid, ip, browser = line:match('^(%d+) (%S+) (%S*) (.*)$')
        if at and sid ~= s[1] and tonumber(at) > since then
            browsers[#browsers + 1] = record_add({}, {'at', 'ip', 'name'}, {at, ip, browser})
        end
    end
    return record_add({}, {'last_sign_in_at', 'last_sign_in_ip', 'failed_sign_ins', 'attacked', 'recovered', 'browsers'},
                      {s[4], s[5] ~= '' and s[5], tonumber(u[1] or '0') - tonumber(s[3] or u[1] or '0'), s[6],
                       recovered > since and recovered, browsers})
end

-- Clears everything counted against the user. Counters are named by keyed tags, so they cannot be found; noting the
-- time makes them void.
local function user_forgive(user, now)
    redis.call('HSET', K.user(user), 'forgiven', now)
    redis.call('HDEL', K.user(user), 'wrong_codes', 'locked')
end

-- A secret has one digest per master key. Of digests ('<digest>,<digest>', the current key's first), returns the one
-- that exists, or the first if none does.
local function known_digest(digests, name)
    for digest in digests:gmatch('[^,]+') do
        if exists(name(digest)) then
            return digest
        end
    end
    return digests:match('[^,]+')
end

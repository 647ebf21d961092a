-- Part of the prelude (engine/lua/prelude.lua): what strangers write, and the counters of attempts.

-- Anybody can write these, so what they take in Redis has a bound: beyond it, the network that has written the most loses
-- its oldest. list: '<network> <time> <words>' in the order of these; networks: how many each network has; names: of the
-- words, whose first name tells whether it still lasts. Counters of sign-ins, each of which costs a password hash, are
-- apart from those of requests that cost nothing: whoever could displace his own with these would guess without limit.
local STRANGERS = {
    enrolment = {list = K.enrolments, networks = K.enrolment_networks,
                 names = function(digest, code_digest) return K.device(digest), K.user_code(code_digest) end},
    address = {list = K.addresses, networks = K.address_networks, names = K.throttle},
    sign_in = {list = K.throttles, networks = K.throttle_networks, names = K.throttle},
}
-- So many are looked at with each new one, to leave out those that have expired; and so many are removed at most.
local STRANGERS_LOOKED_AT, STRANGERS_CUT = 8, 64

local function strangers_leave_out(of, member)
    local network = member:match('^%S+')
    redis.call('ZREM', of.list(), member)
    if tonumber(redis.call('ZINCRBY', of.networks(), -1, network)) <= 0 then
        redis.call('ZREM', of.networks(), network)
    end
end

local function strangers_names(of, member)
    return of.names(member:match('^%S+ %d+ (%S+) ?(%S*)$'))
end

local function strangers_cut(of, most)
    for _ = 1, STRANGERS_CUT do
        if redis.call('ZCARD', of.list()) <= most then
            return
        end
        local heaviest = redis.call('ZREVRANGE', of.networks(), 0, 0)[1] or ''
        local oldest = redis.call('ZRANGEBYLEX', of.list(), '[' .. heaviest .. ' ', '(' .. heaviest .. '!', 'LIMIT', 0, 1)[1]
        if not oldest then -- somebody has removed one of the two
            redis.call('DEL', of.list(), of.networks())
            return
        end
        redis.call('DEL', strangers_names(of, oldest))
        strangers_leave_out(of, oldest)
    end
end

-- kind: of STRANGERS. most: that are kept here. kept: how long they last at most, in ms. words: of one that was made just
-- now; nil: none was, but one goes on.
local function strangers_keep(kind, network, most, kept, words)
    local of = STRANGERS[kind]
    if words then
        redis.call('ZADD', of.list(), 0, string.format('%s %015.0f %s', network, now_ms(), words))
        redis.call('ZINCRBY', of.networks(), 1, network)
        for _, member in ipairs(redis.call('ZRANDMEMBER', of.list(), STRANGERS_LOOKED_AT)) do
            if not exists((strangers_names(of, member))) then
                strangers_leave_out(of, member)
            end
        end
    end
    strangers_cut(of, most)
    redis.call('PEXPIRE', of.list(), kept)
    redis.call('PEXPIRE', of.networks(), kept)
end

-- A throttle counts failures. From the free-th failure within the window, each one starts a wait, and the waits double.
-- A rule that closes waits for the rest of its window instead.
local THROTTLE_WINDOW_MS = 15 * 60 * 1000
local THROTTLE_FIRST_WAIT_MS = 30 * 1000

-- The counters of an attempt to sign in or step up. free: failures before the first wait. under_way: how many may be
-- judged at once; far more than fail on an ordinary morning, yet a bound on the work that guesses cause. forgiven: a
-- right attempt clears the counter. A network's counters stay, because otherwise anyone with a user here could guess at
-- others for ever. An email's global counter stays too, because the owner signs in while strangers guess.
-- Counters of a browser, a session or a user lie with the account. Each of the others lies in the partition of its tag,
-- so the throttle_... scripts act on the counters of one partition.
local THROTTLES = {
    pair = {free = 5, under_way = 10, forgiven = true},     -- one email from one network
    network = {free = 20, under_way = 100},                 -- IPv4 /24, IPv6 /56
    wide = {free = 60, under_way = 300},                    -- IPv6 /48
    email = {free = 30, under_way = 100, window = 60 * 60 * 1000, closes = true}, -- one email from all networks
    browser = {free = 5, under_way = 10, forgiven = true},  -- a browser that its user signed in from before
    session = {free = 5, under_way = 10, forgiven = true},  -- step-ups of one session
    user = {free = 20, under_way = 40},                     -- step-ups of one user
    address = {free = 30},                                  -- wrong codes of links, requests of devices; never reserved
}
-- Which counters are written for strangers: not those of an account.
local THROTTLE_STRANGERS = {address = 'address', pair = 'sign_in', network = 'sign_in', wide = 'sign_in', email = 'sign_in'}
local THROTTLE_KEPT_MS = 75 * 60 * 1000 -- the longest window, and the longest wait
-- Longer than a password ever queues for hashing. A dead node's reservations last this long.
local UNDER_WAY_MS = 60 * 1000

-- forgiven: a time or nil; failures in a window that began before it no longer count. It comes from the clock of the
-- user's partition, which may be ahead of this one. A time that is not reached here forgives nothing yet, because
-- every new window would begin before it.
local function throttle_read(tag, now, forgiven)
    local t = redis.call('HMGET', K.throttle(tag), 'n', 'first', 'until')
    local first = tonumber(t[2] or '0')
    if forgiven and forgiven <= now and first <= forgiven then
        return {n = 0, first = 0, wait_until = 0}
    end
    return {n = tonumber(t[1] or '0'), first = first, wait_until = tonumber(t[3] or '0')}
end

-- Milliseconds to wait; 0: the attempt may go ahead.
local function throttle_wait(tag, now, forgiven)
    return math.max(0, throttle_read(tag, now, forgiven).wait_until - now)
end

-- Counts one failure; call it only if throttle_wait() is 0. Returns the new count.
local function throttle_count(tag, free, now, rule, forgiven)
    local window = rule and rule.window or THROTTLE_WINDOW_MS
    local t = throttle_read(tag, now, forgiven)
    if t.n == 0 or now - t.first >= window then
        t = {n = 0, first = now, wait_until = 0}
    end
    t.n = t.n + 1
    if t.n >= free and rule and rule.closes then
        t.wait_until = t.first + window
    elseif t.n >= free then
        t.wait_until = now + math.min(THROTTLE_FIRST_WAIT_MS * 2 ^ math.min(t.n - free, 20), THROTTLE_WINDOW_MS)
    end
    redis.call('HSET', K.throttle(tag), 'n', t.n, 'first', t.first, 'until', t.wait_until)
    redis.call('PEXPIRE', K.throttle(tag), math.max(1, math.max(t.first + window, t.wait_until) - now))
    return t.n
end

-- Attempts to sign in and to step up. Each is reserved before its password is hashed. A wrong one ends as a failure,
-- and a right one releases its place. An attempt that ends after a limit was reached is refused, wrong or right. So
-- right attempts in parallel block nobody, and guesses in parallel get no more verdicts than the limit.

-- list: '<rule>:<tag>,' for each counter.
local function attempt_counters(list)
    local counters = {}
    for name, tag in list:gmatch('(%l+):([^,]+)') do
        counters[#counters + 1] = {name = name, rule = THROTTLES[name], tag = tag}
    end
    return counters
end

-- Seconds to wait, at least 1; nil: no counter has reached its limit.
local function attempt_wait_s(counters, now, forgiven)
    local wait = 0
    for _, c in ipairs(counters) do
        wait = math.max(wait, throttle_wait(c.tag, now, forgiven))
    end
    return wait > 0 and math.ceil(wait / 1000) or nil
end

-- Returns seconds to wait, because a limit was reached or too many are under way; nil: the attempt is reserved.
local function attempt_reserve(counters, id, now, forgiven)
    local wait_s = attempt_wait_s(counters, now, forgiven)
    if wait_s then
        return wait_s
    end
    for _, c in ipairs(counters) do
        if redis.call('ZCOUNT', K.under_way(c.tag), now, '+inf') >= c.rule.under_way then
            return 1
        end
    end
    for _, c in ipairs(counters) do
        redis.call('ZREMRANGEBYSCORE', K.under_way(c.tag), '-inf', '(' .. now)
        redis.call('ZADD', K.under_way(c.tag), now + UNDER_WAY_MS, id)
        redis.call('PEXPIRE', K.under_way(c.tag), UNDER_WAY_MS)
    end
    return nil
end

local function attempt_give_back(counters, id)
    for _, c in ipairs(counters) do
        redis.call('ZREM', K.under_way(c.tag), id)
    end
end

-- Counts a wrong attempt, which ends. Returns seconds to wait if others reached a limit since it began: then it was not
-- counted. Otherwise nil, and whether it closed sign-in by this email to unknown browsers.
local function attempt_fail(counters, id, now, forgiven)
    local wait_s, closed = attempt_wait_s(counters, now, forgiven), false
    attempt_give_back(counters, id)
    if wait_s then
        return wait_s
    end
    for _, c in ipairs(counters) do
        local n = throttle_count(c.tag, c.rule.free, now, c.rule, forgiven)
        closed = closed or (c.rule.closes and n == c.rule.free)
    end
    return nil, closed
end

local function attempt_succeed(counters, id)
    attempt_give_back(counters, id)
    for _, c in ipairs(counters) do
        if c.rule.forgiven then
            redis.call('DEL', K.throttle(c.tag))
        end
    end
end

#!lua flags=allow-oom
-- Counts and records a wrong attempt, the same work for a known and an unknown user. It is not counted if others
-- reached a limit since it began: what it was is not told then.
-- ARGV: prefix, user ('' unknown), attempt, its counters, whether the password was right and the code wrong ('1'), ip,
--   request id, events kept, who steps up ('' a sign-in: nobody knows who that is)
-- Returns: ok, whether sign-in is closed to unknown browsers from now on, whether the user is locked from now on;
--   refused, seconds to wait
-- Events: login.failed or step_up.failed, user.locked

-- With three codes right at a time, a hundred guesses succeed once in 3,300 tries.
local WRONG_CODES_MAX = 100
-- Failures by emails that nobody has, of all accounts together.
local STRANGERS_KEPT = 1000

local user, now = ARGV[2], now_ms()
local counters, guard = attempt_counters(ARGV[4]), user_guard(user)
local wait_s = attempt_wait_s(counters, now, guard.forgiven)
attempt_give_back(counters, ARGV[3])
if wait_s then
    return {'refused', wait_s}
end

local account = redis.call('HGET', K.user(user), 'account')
local closed = attempt_fail(counters, now, guard.forgiven)
if not account then
    redis.call('XADD', K.strangers(), 'MAXLEN', '~', STRANGERS_KEPT, '*', 'type', 'login.failed', 'ip', ARGV[6],
               'request_id', ARGV[7])
    return {'ok', closed and 1 or 0, 0}
end

local actor = ARGV[9]
audit(account, actor == '' and 'login.failed' or 'step_up.failed', user, {actor, ARGV[6], ARGV[7], ARGV[8]}, 'refused')
if closed then
    redis.call('HSET', K.user(user), 'attacked', now)
end
local locks = false
if ARGV[5] == '1' and not guard.locked then
    locks = redis.call('HINCRBY', K.user(user), 'wrong_codes', 1) >= WRONG_CODES_MAX
end
if locks then
    redis.call('HSET', K.user(user), 'locked', now)
    audit(account, 'user.locked', user, {'system', ARGV[6], ARGV[7], ARGV[8]})
end
return {'ok', closed and 1 or 0, locks and 1 or 0}

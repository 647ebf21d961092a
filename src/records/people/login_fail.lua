#!lua flags=allow-oom
-- Counts a wrong attempt and writes its event, with the same work for known and unknown users. If others reached a
-- limit since the attempt began, it is refused instead, and whether it was wrong stays unknown.
-- ARGV: prefix, user ('' if unknown), attempt, tags (its counters in this partition), is_code (whether the password was
--   right and the code wrong, '1'), ip, request_id, events_kept, actor (of a step-up; '' for a sign-in, whose actor is
--   unknown), closed_elsewhere (whether its counters elsewhere closed sign-in to unknown browsers, '1')
-- Returns: ok, whether this closed sign-in to unknown browsers, whether this locked the user; refused, seconds to wait
-- Events: login.failed or step_up.failed, user.locked

-- Three codes are valid at any time, so 100 guesses hit one with a chance of 1 in 3,300.
local WRONG_CODES_MAX = 100
-- Failures by unknown emails, for all accounts together.
local STRANGERS_KEPT = 1000

local now = now_ms()
local counters, guard = attempt_counters(tags), user_guard(user)
local wait_s, closed = attempt_fail(counters, attempt, now, guard.forgiven)
if wait_s then
    return {'refused', wait_s}
end
closed = closed or closed_elsewhere == '1'

local account = redis.call('HGET', K.user(user), 'account')
if not account then
    audit_in(K.strangers(), STRANGERS_KEPT, '', 'refused',
             {'type', 'login.failed', 'actor', '', 'target', '', 'ip', ip, 'request_id', request_id})
    redis.call('HINCRBY', K.strangers_counts(), 'failures', 1)
    return {'ok', closed and 1 or 0, 0}
end

audit(account, actor == '' and 'login.failed' or 'step_up.failed', user, {actor, ip, request_id, events_kept},
      {class = 'refused'})
if actor == '' then
    redis.call('HINCRBY', K.user(user), 'failures', 1)
end
if closed then
    redis.call('HSET', K.user(user), 'attacked', now)
end
-- A lock ends nothing. It stops sign-ins, which are changes: a replaced master cannot have them acknowledged. So its
-- answer does not wait for leases of such a master, as those of ends do.
local locks = false
if is_code == '1' and not guard.locked then
    locks = redis.call('HINCRBY', K.user(user), 'wrong_codes', 1) >= WRONG_CODES_MAX
end
if locks then
    redis.call('HSET', K.user(user), 'locked', now)
    audit(account, 'user.locked', user, {'system', ip, request_id, events_kept})
end
return {'ok', closed and 1 or 0, locks and 1 or 0}

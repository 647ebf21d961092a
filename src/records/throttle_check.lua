#!lua flags=allow-oom
-- Whether a limit was reached since the attempt began. Changes nothing.
-- ARGV: prefix, _ (the attempt, as for throttle_reserve.lua), tags (its counters in this partition), #forgiven (when an
--   operator cleared the user's counters; 0: never)
-- Returns: ok; refused, seconds to wait

local wait_s = attempt_wait_s(attempt_counters(tags), now_ms(), forgiven)
return wait_s and {'refused', wait_s} or {'ok'}

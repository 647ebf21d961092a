#!lua flags=allow-oom
-- Reserves an attempt before it is judged: at all of these counters or at none. Counts nothing yet.
-- ARGV: prefix, attempt, tags (its counters in this partition), #forgiven (when an operator cleared the user's
--   counters; 0: never)
-- Returns: ok; refused, seconds to wait

local wait_s = attempt_reserve(attempt_counters(tags), attempt, now_ms(), forgiven)
return wait_s and {'refused', wait_s} or {'ok'}

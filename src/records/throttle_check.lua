#!lua flags=allow-oom
-- Whether a limit was reached since the attempt began. Changes nothing.
-- ARGV: prefix, attempt, its counters in this partition, when an operator cleared the user's counters (0: never)
-- Returns: ok; refused, seconds to wait

local wait_s = attempt_wait_s(attempt_counters(ARGV[3]), now_ms(), tonumber(ARGV[4]))
return wait_s and {'refused', wait_s} or {'ok'}

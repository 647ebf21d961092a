#!lua flags=allow-oom
-- Counts a wrong attempt. If others reached a limit since it began, it is refused instead.
-- ARGV: prefix, attempt, its counters in this partition, when an operator cleared the user's counters (0: never)
-- Returns: ok, whether this closed sign-in to unknown browsers; refused, seconds to wait

local wait_s, closed = attempt_fail(attempt_counters(ARGV[3]), ARGV[2], now_ms(), tonumber(ARGV[4]))
return wait_s and {'refused', wait_s} or {'ok', closed and 1 or 0}

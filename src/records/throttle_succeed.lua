#!lua flags=allow-oom
-- Ends a right attempt: releases its reservation, and clears the counters that are forgiven.
-- ARGV: prefix, attempt, its counters in this partition
-- Returns: ok

attempt_succeed(attempt_counters(ARGV[3]), ARGV[2])
return {'ok'}

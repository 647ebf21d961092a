#!lua flags=allow-oom
-- Releases the reservation of an attempt that got no verdict.
-- ARGV: prefix, attempt, its counters
-- Returns: ok

attempt_give_back(attempt_counters(ARGV[3]), ARGV[2])
return {'ok'}

#!lua flags=allow-oom
-- Gives an attempt back that came to no verdict.
-- ARGV: prefix, attempt, its counters
-- Returns: ok

attempt_give_back(attempt_counters(ARGV[3]), ARGV[2])
return {'ok'}

#!lua flags=allow-oom
-- Releases the reservation of an attempt that got no verdict.
-- ARGV: prefix, attempt, tags (its counters)
-- Returns: ok

attempt_give_back(attempt_counters(tags), attempt)
return {'ok'}

#!lua flags=allow-oom
-- Ends a right attempt: releases its reservation, and clears the counters that are forgiven.
-- ARGV: prefix, attempt, tags (its counters in this partition)
-- Returns: ok

attempt_succeed(attempt_counters(tags), attempt)
return {'ok'}

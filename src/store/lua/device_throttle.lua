-- Counts a request of a device against its address, in the partition of the address' tag: a begun enrolment, a wrong
-- device code, or a poll that came too soon.
-- ARGV: prefix, tag of the address
-- Returns: ok; refused, seconds to wait

local FREE_PER_ADDRESS = 30

return throttle_refused(ARGV[2], FREE_PER_ADDRESS, now_ms()) or {'ok'}

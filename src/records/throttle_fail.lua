#!lua flags=allow-oom
-- Counts a wrong attempt. If others reached a limit since it began, it is refused instead.
-- ARGV: prefix, attempt, tags (its counters in this partition), #forgiven (when an operator cleared the user's
--   counters; 0: never), network (that it came from, a tag), #kept_max (counters of a kind that are kept here)
-- Returns: ok, whether this closed sign-in to unknown browsers; refused, seconds to wait

local counters = attempt_counters(tags)
for _, c in ipairs(counters) do
    c.is_new = not exists(K.throttle(c.tag))
end
local wait_s, closed = attempt_fail(counters, attempt, now_ms(), forgiven)
if wait_s then
    return {'refused', wait_s}
end
for _, c in ipairs(counters) do
    local kind = THROTTLE_STRANGERS[c.name]
    if kind then
        strangers_keep(kind, network, kept_max, THROTTLE_KEPT_MS, c.is_new and c.tag or nil)
    end
end
return {'ok', closed and 1 or 0}

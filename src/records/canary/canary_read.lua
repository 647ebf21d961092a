-- How the canary stands, for 'chatelaine status' and the console.
-- ARGV: prefix
-- Returns: not_found: no node has run it. ok, interval in ms, finished runs, ms since the last of them (-1: none), the
--   node that ran it, how long its revocation took in microseconds, how many nodes refused, accepted, did not answer,
--   the last node to refuse, its ms; unfinished runs, ms since the last of them (-1: none), why; violations, ms since
--   the last one (-1: none), its node

local now, canary = now_ms(), hash_read(K.canary())

local function since(field)
    return canary[field] and math.max(0, now - tonumber(canary[field])) or -1
end

local function number(field)
    return tonumber(canary[field] or '0')
end

if not canary.started then
    return {'not_found'}
end
return {'ok', number('interval'), number('finished_runs'), since('finished'), canary.finished_by or '',
        number('finished_us'), number('refused'), number('accepted'), number('silent'), canary.slowest or '',
        number('slowest_ms'), number('unfinished'), since('unfinished_at'), canary.unfinished_why or '',
        number('violations'), since('violated'), canary.violated_by or ''}

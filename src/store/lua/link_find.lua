-- The link of a code, before it is used. A wrong code counts against the address.
-- ARGV: prefix, digests of the code, tag of the address
-- Returns: ok, link_reply(); not_found: there is none that can be used; refused, seconds to wait

local FREE_PER_ADDRESS = 30

local digest, tag, now = known_digest(ARGV[2], K.link), ARGV[3], now_ms()
local wait = throttle_wait(tag, now)
if wait > 0 then
    return {'refused', math.ceil(wait / 1000)}
end
local link = link_read(digest, now)
if not link then
    throttle_count(tag, FREE_PER_ADDRESS, now)
    return {'not_found'}
end
return {'ok', link_reply(link)}

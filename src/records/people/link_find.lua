-- The link of a code, before it is used.
-- ARGV: prefix, digests (of the code)
-- Returns: ok, link_reply(); not_found: there is none that can be used

local link = link_read(known_digest(digests, K.link), now_ms())
if not link then
    return {'not_found'}
end
return {'ok', link_reply(link)}

-- Keeps the secret of a new authenticator for the browser that goes on with a link, sealed with that browser's cookie:
-- what others were shown before is void.
-- ARGV: prefix, digest, totp (the sealed secret)
-- Returns: ok, link_reply(); not_found

local now = now_ms()
local link = link_read(digest, now)
if not link then
    return {'not_found'}
end
redis.call('HSET', K.link(digest), 'totp', totp, 'started', now)
link.totp = totp
return {'ok', link_reply(link)}

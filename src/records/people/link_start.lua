-- Keeps the secret of a new authenticator for the browser that goes on with a link, sealed with that browser's cookie:
-- what others were shown before is void.
-- ARGV: prefix, digest, sealed TOTP secret
-- Returns: ok, link_reply(); not_found

local now = now_ms()
local link = link_read(ARGV[2], now)
if not link then
    return {'not_found'}
end
redis.call('HSET', K.link(ARGV[2]), 'totp', ARGV[3], 'started', now)
link.totp = ARGV[3]
return {'ok', link_reply(link)}

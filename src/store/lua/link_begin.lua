-- Keeps the authenticator of whoever opened a link, unless there is one: whoever opens it again sees the same, so that
-- neither a second page nor a scanner of mails makes the first one's authenticator void.
-- ARGV: prefix, digest, sealed TOTP secret
-- Returns: ok, link_reply(); not_found

local link = link_read(ARGV[2], now_ms())
if not link then
    return {'not_found'}
end
if redis.call('HSETNX', K.link(ARGV[2]), 'totp', ARGV[3]) == 1 then
    link.totp = ARGV[3]
end
return {'ok', link_reply(link)}

-- Notes that somebody has opened a link. Its secret is in an address, which gateways of mails and whoever forwards it
-- open too: the owners see it in the trail, and who opens it next sees it on the page.
-- ARGV: prefix, digest, from_network, browser_name, source {actor, ip, request_id, events_kept}
-- Returns: ok, link_reply(), {time, network, browser} for each earlier opening, newest first; not_found
-- Event: link.opened

-- What is kept for the page, and told in the trail: whoever has the link must push nothing out of it.
local KEPT = 5
local TOLD = 20

local now = now_ms()
local link = link_read(digest, now)
if not link then
    return {'not_found'}
end
local reply, lines = {'ok', link_reply(link)}, {string.format('%.0f %s %s', now, from_network, browser_name)}
for line in (redis.call('HGET', K.link(digest), 'opened') or ''):gmatch('[^\n]+') do
    local time, network, browser = line:match('^(%d+) (%S*) (.+)$') -- a Unix socket has no network
    reply[#reply + 1] = {tonumber(time), network, browser}
    if #lines < KEPT then
        lines[#lines + 1] = line
    end
end
redis.call('HSET', K.link(digest), 'opened', table.concat(lines, '\n'))
if redis.call('HINCRBY', K.link(digest), 'openings', 1) <= TOLD then
    audit(link.account, 'link.opened', link.user ~= '' and link.user or link.id, source,
          {data = {browser = browser_name, email = link.email, network = from_network}})
end
return reply

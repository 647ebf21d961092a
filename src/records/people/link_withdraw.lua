#!lua flags=allow-oom
-- Withdraws an invitation.
-- ARGV: prefix, account, id, actor, ip, request id, events to keep, the actor's credential
-- Returns: ok; not_found: there is none of that id in the account that can be used; as actor_refused()
-- Event: user.removed

local account, id = ARGV[2], ARGV[3]
local refused = actor_refused(ARGV[8], ARGV[4], account)
if refused then
    return refused
end
local member = redis.call('ZRANGEBYLEX', K.account_invitations(account), '[' .. id .. ' ', '(' .. id .. '!',
                          'LIMIT', 0, 1)[1]
local link = member and link_read(member:match('^%S+ (%S+)'), now_ms())
if not link then
    return {'not_found'}
end
link_forget(link)
audit(account, 'user.removed', id, source_from(4), {data = {email = link.email, role = link.role}})
return {'ok'}

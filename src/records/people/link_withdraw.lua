#!lua flags=allow-oom
-- Withdraws an invitation.
-- ARGV: prefix, account, id, source {actor, ip, request_id, events_kept}, credential (the actor's)
-- Returns: ok; not_found: there is none of that id in the account that can be used; as actor_refused()
-- Event: user.removed

local refused = actor_refused(credential, actor, account)
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
audit(account, 'user.removed', id, source, {data = {email = link.email, role = link.role}})
return {'ok'}

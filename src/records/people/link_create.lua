-- Makes an invitation. It replaces an earlier one of the account to the same email. The node has seen that the email is
-- free; it is claimed only when the link is used.
-- ARGV: prefix, digest, id, account, email, role, created, expires, mac, source {actor, ip, request_id, events_kept},
--   credential (the actor's), #people_max (of an account), #changes_max (per minute)
-- Returns: ok; refused: no such account; full: the account has its maximum of people and invitations; as
--   actor_refused(); as conflicts_refused(); as limit_refused()
-- Event: user.invited

local refused = actor_refused(credential, actor, account)
if refused then
    return refused
end
if not exists(K.account(account)) then
    return {'refused'}
end
local now = now_ms()
node_time(created, now)
invitations_sweep(account, now)
if credential ~= '' then
    local limited = conflicts_refused(account) or limit_refused(actor, account, 'live', changes_max)
    local people = redis.call('SCARD', K.account_users(account)) + redis.call('ZCARD', K.account_invitations(account))
    if limited or (people_max > 0 and people >= people_max) then
        return limited or {'full'}
    end
    limit_count(actor, account, 'live', changes_max)
end

local earlier = redis.call('HGET', K.account_invited(account), email)
local link = earlier and link_read(earlier, now)
if link then
    link_forget(link)
end
redis.call('HSET', K.link(digest), 'id', id, 'account', account, 'email', email, 'role', role, 'user', '',
           'by', actor, 'ip', ip, 'created', created, 'expires', expires, 'mac', mac)
redis.call('PEXPIREAT', K.link(digest), expires)
redis.call('ZADD', K.account_invitations(account), 0, id .. ' ' .. digest .. ' ' .. email)
redis.call('HSET', K.account_invited(account), email, digest)
audit(account, 'user.invited', id, source, {data = {email = email, role = role}})
return {'ok'}

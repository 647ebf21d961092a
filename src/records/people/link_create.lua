-- Makes an invitation. It replaces an earlier one of the account to the same email. The node has seen that the email is
-- free; it is claimed only when the link is used.
-- ARGV: prefix, digest, id, account, email, role, created, expires, MAC, actor, ip, request id, events to keep, the
--   actor's credential, most people of an account, most changes per minute
-- Returns: ok; refused: no such account; full: the account has its maximum of people and invitations; as
--   actor_refused(); as conflicts_refused(); as limit_refused()
-- Event: user.invited

local digest, account, email, actor, credential = ARGV[2], ARGV[4], ARGV[5], ARGV[10], ARGV[14]
local refused = actor_refused(credential, actor, account)
if refused then
    return refused
end
if not exists(K.account(account)) then
    return {'refused'}
end
local now, changes_max, people_max = now_ms(), tonumber(ARGV[16]), tonumber(ARGV[15])
node_time(ARGV[7], now)
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
redis.call('HSET', K.link(digest), 'id', ARGV[3], 'account', account, 'email', email, 'role', ARGV[6], 'user', '',
           'by', actor, 'ip', ARGV[11], 'created', ARGV[7], 'expires', ARGV[8], 'mac', ARGV[9])
redis.call('PEXPIREAT', K.link(digest), ARGV[8])
redis.call('ZADD', K.account_invitations(account), 0, ARGV[3] .. ' ' .. digest .. ' ' .. email)
redis.call('HSET', K.account_invited(account), email, digest)
audit(account, 'user.invited', ARGV[3], source_from(10), {data = {email = email, role = ARGV[6]}})
return {'ok'}

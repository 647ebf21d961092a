-- Uses a link, once: makes the user of an invitation, who has claimed the email (email_claim.lua), or gives the user of
-- a reset a password and an authenticator. Repeating the former changes nothing.
-- ARGV: prefix, digest, MAC of the link as read, user, password, sealed TOTP secret, MAC of a new user, created, ip,
--   request id, events to keep, account and email of a new user ('' for a reset), sealed TOTP secret of the link as read
-- Returns: ok; not_found: it has ended or changed, or another browser has started, or the new user was voided, or the
--   user is disabled; suspended: the account is suspended or closed
-- Events: user.joined; or user.password_changed, user.totp_changed

local user, now = ARGV[4], now_ms()
local source = {user, ARGV[9], ARGV[10], ARGV[11]}
if user_was_created(user, ARGV[12], ARGV[13]) then
    return {'ok'}
end
local link = link_read(ARGV[2], now)
if not link or link.mac ~= ARGV[3] or link.totp ~= ARGV[14] or (link.user ~= '' and link.user ~= user) then
    return {'not_found'}
end
if link.user == '' and (exists(K.void(user)) or exists(K.user(user)) or not exists(K.account(link.account))) then
    return {'not_found'}
end
if account_status(link.account) ~= 'active' then
    return {'suspended'}
end
if link.user ~= '' and redis.call('HGET', K.user(user), 'disabled') then
    return {'not_found'}
end

-- Whoever made the link could have used it, too.
local maker = {link_by = link.by}
if ARGV[9] ~= '' and redis.call('HGET', K.link(ARGV[2]), 'ip') == ARGV[9] then
    maker.same_address = 'yes'
end

link_forget(link)
redis.call('HSET', K.user(user), 'password', ARGV[5], 'totp', ARGV[6])
if link.user ~= '' then
    redis.call('HDEL', K.user(user), 'totp_step', 'password_expired')
    user_forgive(user, now)
    audit(link.account, 'user.password_changed', user, source, {data = maker})
    audit(link.account, 'user.totp_changed', user, source)
    return {'ok'}
end
redis.call('HSET', K.user(user), 'account', link.account, 'email', link.email, 'created', ARGV[8], 'mac', ARGV[7])
user_put_state(user, link.role, '')
people_put(link.account, user, link.role, '')
maker.role, maker.invitation = link.role, link.id
audit(link.account, 'user.joined', user, source, {data = maker})
return {'ok'}

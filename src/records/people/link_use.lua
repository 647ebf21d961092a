-- Uses a link, once: makes the user of an invitation, who has claimed the email (email_claim.lua), or gives the user of
-- a reset a password and an authenticator. Repeating the former changes nothing.
-- ARGV: prefix, digest, mac (of the link as read), user, password, totp (the sealed secret), user_mac (of a new user),
--   created, ip, request_id, events_kept, account (of a new user; '' for a reset), email (likewise), totp_read (sealed
--   secret of the link as read)
-- Returns: ok; not_found: it has ended or changed, or another browser has started, or the new user was voided, or the
--   user is disabled; suspended: the account is suspended or closed
-- Events: user.joined; or user.password_changed, user.totp_changed

local now = now_ms()
local source = {user, ip, request_id, events_kept}
if user_was_created(user, account, email) then
    return {'ok'}
end
local link = link_read(digest, now)
if not link or link.mac ~= mac or link.totp ~= totp_read or (link.user ~= '' and link.user ~= user) then
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
if ip ~= '' and redis.call('HGET', K.link(digest), 'ip') == ip then
    maker.same_address = 'yes'
end

link_forget(link)
redis.call('HSET', K.user(user), 'password', password, 'totp', totp)
if link.user ~= '' then
    redis.call('HDEL', K.user(user), 'totp_step', 'password_expired')
    user_forgive(user, now)
    audit(link.account, 'user.password_changed', user, source, {data = maker})
    audit(link.account, 'user.totp_changed', user, source)
    return {'ok'}
end
redis.call('HSET', K.user(user), 'account', link.account, 'email', link.email, 'created', created, 'mac', user_mac)
user_put_state(user, link.role, '')
people_put(link.account, user, link.role, '')
maker.role, maker.invitation = link.role, link.id
audit(link.account, 'user.joined', user, source, {data = maker})
return {'ok'}

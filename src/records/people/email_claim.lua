-- Claims an email for a user who is created next. Repeating changes nothing.
-- ARGV: prefix, email, user, text (the claim), replaced (the claim to replace: its user was voided; '' for none)
-- Returns: ok; conflict, user, account and text of the claim that exists

local claimant = email_claimant(email)
if claimant == user then
    return {'ok'}
end
local claim, _, account = redis.call('GET', K.email(email)), email_owner(email)
if account and claim ~= replaced then
    return {'conflict', claimant, account, claim}
end
-- A claim that names no account is of a user who belongs here, and there is no such user.
if claim and not account then
    redis.call('SET', K.void(claimant), 1)
end
redis.call('SET', K.email(email), text)
return {'ok'}

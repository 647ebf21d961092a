-- Adds a key, or a decoy, whose record is revoked from the start. It ends when the key that makes it does. Limits
-- apply to API callers, not to commands.
-- ARGV: prefix, digest, key record, actor, ip, request id, events to keep, the actor's credential, limits of
--   keys_are_full(), most changes per minute
-- Returns: ok; refused: no such account; suspended: it is suspended or closed; conflict: the digest or id exists; full:
--   the account has its maximum of keys; as actor_refused(); as limit_refused(); as leaving_refused()
-- Events: <kind>.created; of a decoy also <kind>.revoked

local actor, credential, keys_max, changes_max = ARGV[4], ARGV[8], ARGV[9], tonumber(ARGV[10])
local key = key_unpack(ARGV[3])
if credential ~= '' then
    local refused = actor_refused(credential, actor, key.account)
        or limit_refused(actor, key.account, key.mode, changes_max) or leaving_refused(key)
    if refused then
        return refused
    end
    if not key.revoked and keys_are_full(key.account, key.kind, key.mode, keys_max) then
        return {'full'}
    end
end
local added = key_add(ARGV[2], ARGV[3], source_from(4), nil, {actor_key(credential)})
if added == 'ok' and credential ~= '' then
    limit_count(actor, key.account, key.mode, changes_max)
    keys_made_count(key.account, key.kind, key.mode)
end
return {added}

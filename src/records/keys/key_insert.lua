-- Adds a key, or a decoy, whose record is revoked from the start. It ends when the key that makes it does. Limits
-- apply to API callers, not to commands.
-- ARGV: prefix, digest, packed (the key's record), source {actor, ip, request_id, events_kept}, credential (the
--   actor's), keys_max (limits, as for keys_are_full()), #changes_max (per minute)
-- Returns: ok; refused: no such account; suspended: it is suspended or closed; conflict: the digest or id exists; full:
--   the account has its maximum of keys; as actor_refused(); as limit_refused(); as leaving_refused()
-- Events: <kind>.created; of a decoy also <kind>.revoked

local key = key_unpack(packed)
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
local added = key_add(digest, packed, source, nil, {actor_key(credential)})
if added == 'ok' and credential ~= '' then
    limit_count(actor, key.account, key.mode, changes_max)
    keys_made_count(key.account, key.kind, key.mode)
end
return {added}

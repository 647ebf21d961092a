-- How a key's revocation took effect.
-- ARGV: prefix, id, account ('' for any), kind ('' for any), test_only ('1' or '0')
-- Returns: ok, key, the store's id, name of the event ('' if it is not known), since when no node accepts the key (0: not
--   known), nodes, waited for; not_found: unknown, hidden by the view, or active

local record = key_record(id)
if not record or not record.revoked or not key_visible(record, account, kind, test_only) then
    return {'not_found'}
end
return {'ok', key_reply(record), ending_read(record.account, record.id)}

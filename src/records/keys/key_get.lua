-- One key by its id.
-- ARGV: prefix, id, account ('' for any), kind ('' for any), test_only ('1' or '0')
-- Returns: ok, key; not_found: unknown, or hidden by the view

local record = key_record(id)
if not record or not key_visible(record, account, kind, test_only) then
    return {'not_found'}
end
return {'ok', key_reply(record, true)}

-- One key by its id.
-- ARGV: prefix, id, account ('' for any), kind ('' for any), test only ('1' or '0')
-- Returns: ok, key; not_found: unknown, or hidden by the view

local record = key_record(ARGV[2])
if not record or not key_visible(record, ARGV[3], ARGV[4], ARGV[5]) then
    return {'not_found'}
end
return {'ok', key_reply(record, true)}

-- One key of any account, with the names that belong to it. For commands only.
-- ARGV: prefix, id
-- Returns: ok, key, name of its account, name of the user or key that made it ('' for none); not_found

local record = key_record(id)
if not record then
    return {'not_found'}
end
local by = record.rest:match('\nby=([^\n]+)')
return {'ok', key_reply(record, true), redis.call('HGET', K.account(record.account), 'name') or '',
        by and name_of(record.account, by) or ''}

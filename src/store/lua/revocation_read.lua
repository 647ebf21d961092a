-- How a key's revocation took effect.
-- ARGV: prefix, id, account ('' for any), kind ('' for any), test only ('1' or '0')
-- Returns: ok, key, the store's id, name of the event ('' if it is not known), since when no node accepts the key (0: not
--   known), nodes, waited for; not_found: unknown, hidden by the view, or active

local record = key_record(ARGV[2])
if not record or not record.revoked or not key_visible(record, ARGV[3], ARGV[4], ARGV[5]) then
    return {'not_found'}
end
local noted = redis.call('HGET', K.key_endings(record.account), record.id) or '- -'
local class, entry, effective, nodes, waited_for = noted:match('^(%S+) (%S+) ?(%d*) ?(%d*) ?(%d*)$')
if not class then
    error('the note about the revocation of ' .. record.id .. ' is malformed')
end
local event = ''
for number = 0, #AUDIT_CLASSES do
    if AUDIT_CLASSES[number] == class then
        event = event_name(number, entry)
    end
end
return {'ok', key_reply(record), redis.call('HGET', K.store(), 'id') or '', event, tonumber(effective) or 0,
        tonumber(nodes) or 0, tonumber(waited_for) or 0}

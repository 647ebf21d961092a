-- Gives a key another name. The node seals its record anew, by what it has read of it: of the rest, this keeps what
-- stands there now, above all whether the key is revoked.
-- ARGV: prefix, id, account ('' for any), kind ('' for any), test_only ('1' or '0'), source {actor, ip, request_id,
--   events_kept}, credential (the actor's), #changes_max (per minute), was (the record from its name to its MAC, as it
--   was read), is (the same with the new name)
-- Returns: ok, key; not_found: unknown, or hidden by the view; conflict: it has another name or seal than was read; as
--   actor_refused(); as limit_refused()
-- Event: <kind>.renamed, with both names, unless the key has that name

local refused = actor_refused(credential, actor, account)
if refused then
    return refused
end
local record = key_record(id)
if not record or not key_visible(record, account, kind, test_only) then
    return {'not_found'}
end
local name = is:match('^[^\n]+')
if record.name == name then
    return {'ok', key_reply(record, true)}
end
-- As it is stored: packed again, an end that is due would be written down without its event.
local packed = redis.call('GET', K.key(record.digest))
local head = packed:sub(1, #packed - #record.name - #record.rest)
local bound, loose = packed:sub(#head + 1, #head + #was), packed:sub(#head + #was + 1)
if bound ~= was or (loose ~= '' and loose:sub(1, 1) ~= '\n') or loose:find('\nm=', 1, true) then
    return {'conflict'}
end
refused = limit_refused(actor, record.account, record.mode, changes_max)
if refused then
    return refused
end
-- Nodes that have cached the name read it again. Nobody waits for them, because no check depends on it.
redis.call(PUBLISH, K.invalidations(), record.digest .. ' - -')
redis.call('SET', K.key(record.digest), head .. is .. loose, 'KEEPTTL')
limit_count(actor, record.account, record.mode, changes_max)
audit(record.account, record.kind .. '.renamed', id, source,
      {class = audit_class(record, actor), data = {from = record.name, to = name}})
return {'ok', key_reply(key_record(id), true)}

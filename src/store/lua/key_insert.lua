-- Adds a key.
-- ARGV: prefix, digest, id, kind, account, mode, scopes, last4, name, created, actor, ip, request id, events kept
-- Returns: ok; refused: no such account; conflict: the digest or the id exists
-- Event: <kind>.created

local digest, id, kind, account, mode = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if not exists(K.account(account)) then
    return {'refused'}
end
if exists(K.key(digest)) or exists(K.key_id(id)) then
    return {'conflict'}
end
redis.call('HSET', K.key(digest), 'id', id, 'kind', kind, 'account', account, 'mode', mode, 'scopes', ARGV[7],
           'last4', ARGV[8], 'name', ARGV[9], 'created', ARGV[10])
redis.call('SET', K.key_id(id), digest)
redis.call('ZADD', K.account_keys(account, key_set(kind, mode, 'active')), 0, id)
audit(account, kind .. '.created', id, origin_from(11))
return {'ok'}

-- Adds a key.
-- ARGV: prefix, digest, key record, actor, ip, request id, events kept, the actor's credential
-- Returns: ok; refused: no such account; conflict: the digest or the id exists; as actor_refused()
-- Event: <kind>.created

return actor_refused(ARGV[8], ARGV[4], key_unpack(ARGV[3]).account) or {key_add(ARGV[2], ARGV[3], origin_from(4))}

-- Adds a key.
-- ARGV: prefix, digest, key record, actor, ip, request id, events kept
-- Returns: ok; refused: no such account; conflict: the digest or the id exists
-- Event: <kind>.created

return {key_add(ARGV[2], ARGV[3], origin_from(4))}

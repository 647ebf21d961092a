#!lua flags=allow-oom
-- A node has repeated its revocations, or the loss of the rest was accepted. The change number that comes with this
-- call marks the store as complete.
-- ARGV: prefix
-- Returns: ok

return {'ok'}

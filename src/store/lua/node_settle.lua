#!lua flags=allow-oom
-- A node has told again what it had answered, or the loss of the rest was accepted: the number that comes with the call
-- says that the store holds it.
-- ARGV: prefix
-- Returns: ok

return {'ok'}

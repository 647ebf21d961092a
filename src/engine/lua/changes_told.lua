#!lua flags=allow-oom
-- Whether changes have been told completely at this Redis (endings_tell.lua), so that a node need not repeat them.
-- ARGV: prefix, then '<maker>:<number>' of each
-- Returns: ok, for each 1 (told) or 0

local told = redis.call('SMISMEMBER', K.told(), unpack(ARGV, 2))
told_keep()
return {'ok', unpack(told)}

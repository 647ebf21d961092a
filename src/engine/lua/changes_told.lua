#!lua flags=allow-oom
-- Whether changes have been told completely at this Redis (endings_tell.lua), so that a node need not repeat them.
-- ARGV: prefix, changes... ('<maker>:<number>')
-- Returns: ok, for each 1 (told) or 0

local told = redis.call('SMISMEMBER', K.told(), unpack(ARGV, FIRST))
told_keep()
return {'ok', unpack(told)}

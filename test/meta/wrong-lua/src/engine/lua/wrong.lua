#!lua flags=allow-oom
-- ARGV: prefix, account, unread
local counted = used[1]
return redis.call('GET', coutned .. account)

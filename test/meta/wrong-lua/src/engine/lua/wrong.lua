#!lua flags=allow-oom
local counted = used[1]
return redis.call('GET', coutned)
